// Pinocchio's recursions on open trees, one call for many states (see __init__.py, which compiles and calls it).
#include "model.hpp"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/frames.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics-derivatives.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

using namespace peer;

namespace {

struct Tree {
    pin::Model model;
    std::vector<pin::Data> data;  // one for each thread
};

// A result is copied to `out` only where the caller keeps the results of all states; else it stays in Pinocchio's own
// memory, which is what a user who needs one state at a time would leave it in.
void evaluate(const pin::Model& model, pin::Data& data, int64_t what, int64_t frame, const Input& q, const Input& v,
              const Input& x, double* out, bool keep, pin::Data::Matrix6x& J, pin::Data::Tensor3x& H) {
    const int64_t nv = model.nv;
    switch (what) {
        case 0:
            pin::rnea(model, data, q, v, x);
            if (keep) store(out, data.tau);
            break;
        case 1:
        case 2:
            pin::crba(model, data, q, what == 1 ? pin::Convention::LOCAL : pin::Convention::WORLD);
            if (keep) store(out, data.M);
            break;
        case 3:
        case 4:
            pin::aba(model, data, q, v, x, what == 3 ? pin::Convention::LOCAL : pin::Convention::WORLD);
            if (keep) store(out, data.ddq);
            break;
        case 5:
            pin::computeRNEADerivatives(model, data, q, v, x);
            if (keep) {
                store(out, data.dtau_dq);
                store(out + nv * nv, data.dtau_dv);
                store(out + 2 * nv * nv, data.M);
            }
            break;
        case 6:
            pin::computeABADerivatives(model, data, q, v, x);
            if (keep) {
                store(out, data.ddq_dq);
                store(out + nv * nv, data.ddq_dv);
                store(out + 2 * nv * nv, data.Minv);
            }
            break;
        case 7:
            J.setZero();
            pin::computeFrameJacobian(model, data, q, static_cast<pin::FrameIndex>(frame), pin::LOCAL, J);
            if (keep) store(out, J);
            break;
        case 8:
            pin::computeJointJacobiansTimeVariation(model, data, q, v);
            J.setZero();
            pin::getFrameJacobianTimeVariation(model, data, static_cast<pin::FrameIndex>(frame), pin::LOCAL, J);
            if (keep) store(out, J);
            break;
        case 9:
            pin::computeJointKinematicHessians(model, data, q);
            H.setZero();
            pin::getJointKinematicHessian(model, data, model.frames[static_cast<size_t>(frame)].parentJoint, pin::LOCAL,
                                          H);
            break;
        default:
            pin::framesForwardKinematics(model, data, q);
            break;
    }
}

}  // namespace

extern "C" {

void* tree_new(int64_t joints, const int64_t* parent, const int64_t* kind, const double* axis, const double* pitch,
               const double* placement, const double* inertia, const double* gravity, const double* armature) {
    auto* tree = new Tree{model(joints, parent, kind, axis, pitch, placement, inertia, gravity, armature), {}};
    return tree;
}

void tree_delete(void* tree) { delete static_cast<Tree*>(tree); }

/// A body fixed to a joint; returns its number.
int64_t tree_frame(void* handle, int64_t joint, const double* placement) {
    auto& tree = *static_cast<Tree*>(handle);
    const auto id = static_cast<pin::JointIndex>(joint);
    const auto name = "frame" + std::to_string(tree.model.nframes);
    const auto frame = tree.model.addFrame(pin::Frame(name, id, 0, pose(placement), pin::BODY), false);
    tree.data.clear();  // it has room for the frames that there were; the next run makes it again
    return static_cast<int64_t>(frame);
}

/// `stride` numbers of `out` for each state; 0: nothing is copied.
void tree_run(void* handle, int64_t what, int64_t frame, int64_t count, int64_t threads, const double* q,
              const double* v, const double* x, double* out, int64_t stride) {
    auto& tree = *static_cast<Tree*>(handle);
    const auto& model = tree.model;
    const size_t workers = static_cast<size_t>(threads < 1 ? 1 : threads);
    while (tree.data.size() < workers) tree.data.emplace_back(model);
    std::vector<pin::Data::Matrix6x> J(workers, pin::Data::Matrix6x(6, model.nv));
    std::vector<pin::Data::Tensor3x> H(workers, pin::Data::Tensor3x(6, model.nv, what == 9 ? model.nv : 0));
    for_states(count, threads, [&](int thread, int64_t s) {
        const auto t = static_cast<size_t>(thread);
        evaluate(model, tree.data[t], what, frame, Input(q + s * model.nq, model.nq),
                 Input(v + s * model.nv, model.nv), Input(x + s * model.nv, model.nv), out + s * stride, stride > 0,
                 J[t], H[t]);
    });
}

}  // extern "C"
