// A Pinocchio model built from plain arrays, and a loop over states that several threads may share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <omp.h>

#include <pinocchio/multibody.hpp>

namespace peer {

namespace pin = pinocchio;
using Vector = Eigen::VectorXd;
using Input = Eigen::Map<const Vector>;
using Output = Eigen::Map<Vector>;
using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

inline Eigen::Vector3d vector3(const double* x) { return Eigen::Vector3d(x[0], x[1], x[2]); }
inline Eigen::Matrix3d matrix3(const double* x) { return Eigen::Map<const RowMajor3>(x); }
/// Twelve numbers: the rotation row by row, then the position.
inline pin::SE3 pose(const double* x) { return pin::SE3(matrix3(x), vector3(x + 9)); }

/// Joint kinds as numbered in __init__.py. Axes along x, y, z take Pinocchio's faster joints.
inline pin::JointModel joint(int64_t kind, const double* axis, double pitch) {
    const Eigen::Vector3d a = vector3(axis);
    const int along = a == Eigen::Vector3d::UnitX() ? 0 : a == Eigen::Vector3d::UnitY() ? 1
                    : a == Eigen::Vector3d::UnitZ() ? 2 : 3;
    switch (kind) {
        case 0:
            if (along == 0) return pin::JointModelRX();
            if (along == 1) return pin::JointModelRY();
            if (along == 2) return pin::JointModelRZ();
            return pin::JointModelRevoluteUnaligned(a);
        case 1:
            if (along == 0) return pin::JointModelPX();
            if (along == 1) return pin::JointModelPY();
            if (along == 2) return pin::JointModelPZ();
            return pin::JointModelPrismaticUnaligned(a);
        case 2: return pin::JointModelHelicalUnaligned(a, pitch);
        case 3: return pin::JointModelSpherical();
        default: return pin::JointModelFreeFlyer();
    }
}

/// Joint i hangs on joint parent[i] (0: the world, else one more than its place in the list), and carries one inertia
/// of 13 numbers: mass, centre, rotational inertia about the centre.
inline pin::Model model(int64_t joints, const int64_t* parent, const int64_t* kind, const double* axis,
                        const double* pitch, const double* placement, const double* inertia, const double* gravity,
                        const double* armature) {
    pin::Model out;
    for (int64_t i = 0; i < joints; ++i) {
        const auto id = out.addJoint(static_cast<pin::JointIndex>(parent[i]), joint(kind[i], axis + 3 * i, pitch[i]),
                                     pose(placement + 12 * i), "joint" + std::to_string(i));
        const double* I = inertia + 13 * i;
        out.appendBodyToJoint(id, pin::Inertia(I[0], vector3(I + 1), matrix3(I + 4)));
    }
    out.gravity.linear() = vector3(gravity);
    out.armature = Input(armature, out.nv);
    return out;
}

/// Calls step(thread, state) for every state, each thread its own contiguous part.
template <class Step>
void for_states(int64_t count, int64_t threads, const Step& step) {
    if (threads <= 1) {
        for (int64_t s = 0; s < count; ++s) step(0, s);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t s = 0; s < count; ++s) step(omp_get_thread_num(), s);
}

template <class Derived>
void store(double* out, const Eigen::MatrixBase<Derived>& value) {
    Eigen::Map<Eigen::MatrixXd>(out, value.rows(), value.cols()) = value;
}

}  // namespace peer
