// Pinocchio's code generation: its recursions recorded by CppAD, written as C by CppADCodeGen, and compiled by gcc.
#include <pinocchio/codegen/cppadcg.hpp>
#include <pinocchio/codegen/cppadcg-algo.hpp>

#include "model.hpp"

using namespace peer;

namespace {

struct Function {
    virtual ~Function() = default;
    virtual void evaluate(const Input& q, const Input& v, const Input& x) = 0;
    virtual void results(double* out) const = 0;
};

template <class Generator>
struct Generated : Function, Generator {
    Generated(const pin::Model& model, const char* folder, const char* gcc, const char* march, const char* name)
        : Generator(model, name, std::string(folder) + "/" + name) {
        this->build_jacobian = false;
        this->initLib();
        CppAD::cg::GccCompiler<double> compiler(gcc);
        compiler.setTemporaryFolder(std::string(folder) + "/" + name + "_objects");
        compiler.setCompileFlags({"-O3", march, "-fPIC", "-w"});
        this->dynamicLibManager_ptr->createDynamicLibrary(compiler, false);
        this->loadLib(false);
    }
    void evaluate(const Input& q, const Input& v, const Input& x) override { this->evalFunction(q, v, x); }
    void results(double* out) const override { Output(out, this->y.size()) = this->y; }
};

}  // namespace

extern "C" {

void* codegen_new(int64_t what, int64_t joints, const int64_t* parent, const int64_t* kind, const double* axis,
                  const double* pitch, const double* placement, const double* inertia, const double* gravity,
                  const double* armature, const char* folder, const char* gcc, const char* march) {
    auto made = model(joints, parent, kind, axis, pitch, placement, inertia, gravity, armature);
    made.name = "peer";
    switch (what) {
        case 0: return static_cast<Function*>(new Generated<pin::CodeGenRNEA<double>>(made, folder, gcc, march, "rnea"));
        case 1: return static_cast<Function*>(new Generated<pin::CodeGenABA<double>>(made, folder, gcc, march, "aba"));
        case 2:
            return static_cast<Function*>(
                new Generated<pin::CodeGenRNEADerivatives<double>>(made, folder, gcc, march, "rnea_derivatives"));
        default:
            return static_cast<Function*>(
                new Generated<pin::CodeGenABADerivatives<double>>(made, folder, gcc, march, "aba_derivatives"));
    }
}

void codegen_delete(void* function) { delete static_cast<Function*>(function); }

void codegen_run(void* function, int64_t n, int64_t count, const double* q, const double* v, const double* x) {
    auto& f = *static_cast<Function*>(function);
    for (int64_t s = 0; s < count; ++s) f.evaluate(Input(q + s * n, n), Input(v + s * n, n), Input(x + s * n, n));
}

void codegen_results(const void* function, double* out) { static_cast<const Function*>(function)->results(out); }

}  // extern "C"
