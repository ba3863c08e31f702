// Pinocchio's constrained forward dynamics and its derivatives, one call for many states.
#include "model.hpp"

#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>

using namespace peer;

namespace {

struct Machine {
    pin::Model model;
    std::vector<pin::RigidConstraintModel> closures;
    pin::Data data;
    std::vector<pin::RigidConstraintData> closing;
};

}  // namespace

extern "C" {

/// `rows` of each closure: 3 (a point) or 6 (a frame); it joins frames on two joints.
void* machine_new(int64_t joints, const int64_t* parent, const int64_t* kind, const double* axis, const double* pitch,
                  const double* placement, const double* inertia, const double* gravity, const double* armature,
                  int64_t closures, const int64_t* rows, const int64_t* sides, const double* frames) {
    auto* machine = new Machine{
        model(joints, parent, kind, axis, pitch, placement, inertia, gravity, armature), {}, {}, {}};
    for (int64_t k = 0; k < closures; ++k) {
        machine->closures.emplace_back(
            rows[k] == 3 ? pin::CONTACT_3D : pin::CONTACT_6D, machine->model,
            static_cast<pin::JointIndex>(sides[2 * k]), pose(frames + 24 * k),
            static_cast<pin::JointIndex>(sides[2 * k + 1]), pose(frames + 24 * k + 12), pin::LOCAL);
    }
    machine->data = pin::Data(machine->model);
    for (const auto& closure : machine->closures) machine->closing.emplace_back(closure);
    pin::initConstraintDynamics(machine->model, machine->data, machine->closures, machine->closing);
    return machine;
}

void machine_delete(void* machine) { delete static_cast<Machine*>(machine); }

/// Accelerations, and with `derivatives` also their derivatives to q, v and tau; what is kept are the accelerations of
/// all states and, where `da` is given, the derivatives of the last one. Returns the most proximal iterations used.
int64_t machine_run(void* handle, int64_t derivatives, int64_t count, const double* q, const double* v,
                    const double* tau, double accuracy, double mu, int64_t iterations, double* a, double* da) {
    auto& machine = *static_cast<Machine*>(handle);
    const auto& model = machine.model;
    auto& data = machine.data;
    auto& closing = machine.closing;
    pin::ProximalSettings settings(accuracy, mu, static_cast<int>(iterations));
    int64_t most = 0;
    for (int64_t s = 0; s < count; ++s) {
        pin::constraintDynamics(model, data, Input(q + s * model.nq, model.nq), Input(v + s * model.nv, model.nv),
                                Input(tau + s * model.nv, model.nv), machine.closures, closing, settings);
        Output(a + s * model.nv, model.nv) = data.ddq;
        if (settings.iter > most) most = settings.iter;
        if (derivatives) {
            pin::computeConstraintDynamicsDerivatives(model, data, machine.closures, closing, settings);
        }
    }
    if (derivatives && da) {
        store(da, data.ddq_dq);
        store(da + model.nv * model.nv, data.ddq_dv);
        store(da + 2 * model.nv * model.nv, data.ddq_dtau);
    }
    return most;
}

}  // extern "C"
