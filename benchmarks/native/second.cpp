// Pinocchio's second derivatives of inverse dynamics, one call for many states (see __init__.py).
#include "model.hpp"

#include <pinocchio/algorithm/rnea-second-order-derivatives.hpp>

using namespace peer;

namespace {

struct Second {
    pin::Model model;
    pin::Data data;
    pin::Data::Tensor3x qq, vv, qv, aq;  // zero where they are zero at every state: only the rest is written
};

}  // namespace

extern "C" {

void* second_new(int64_t joints, const int64_t* parent, const int64_t* kind, const double* axis, const double* pitch,
                 const double* placement, const double* inertia, const double* gravity, const double* armature) {
    auto* made = new Second;
    made->model = model(joints, parent, kind, axis, pitch, placement, inertia, gravity, armature);
    made->data = pin::Data(made->model);
    const int nv = made->model.nv;
    for (auto* tensor : {&made->qq, &made->vv, &made->qv, &made->aq}) {
        *tensor = pin::Data::Tensor3x(nv, nv, nv);
        tensor->setZero();
    }
    return made;
}

void second_delete(void* handle) { delete static_cast<Second*>(handle); }

/// The results of the last state remain; `out` receives its four tensors, column by column.
void second_run(void* handle, int64_t count, const double* q, const double* v, const double* a, double* out) {
    auto& it = *static_cast<Second*>(handle);
    const auto& model = it.model;
    for (int64_t s = 0; s < count; ++s)
        pin::ComputeRNEASecondOrderDerivatives(model, it.data, Input(q + s * model.nq, model.nq),
                                               Input(v + s * model.nv, model.nv), Input(a + s * model.nv, model.nv),
                                               it.qq, it.vv, it.qv, it.aq);
    for (const auto* tensor : {&it.qq, &it.vv, &it.qv, &it.aq}) {
        std::copy(tensor->data(), tensor->data() + tensor->size(), out);
        out += tensor->size();
    }
}

}  // extern "C"
