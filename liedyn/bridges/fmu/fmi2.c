/* The functions of FMI 2.0 for model exchange and co-simulation. */
#include <stddef.h>

#include "fmu_core.h"

/* Names begin with a prefix where several FMUs are linked into one program. */
#ifdef FMI2_FUNCTION_PREFIX
#define PASTED(a, b) a##b
#define PASTE(a, b) PASTED(a, b)
#define NAMED(name) PASTE(FMI2_FUNCTION_PREFIX, name)
#else
#define NAMED(name) name
#endif
#if defined(FMI2_Export)
#define EXPORTED FMI2_Export
#elif defined(FMI2_FUNCTION_PREFIX)
#define EXPORTED
#elif defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

/* The types of the standard. */
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef void *fmi2Component;
typedef void *fmi2State;
typedef unsigned int fmi2Reference;
typedef int fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef struct {
    void (*logger)(void *environment, fmi2String instance, fmi2Status status, fmi2String category, fmi2String message,
                   ...);
    void *(*allocateMemory)(size_t count, size_t size);
    void (*freeMemory)(void *memory);
    void (*stepFinished)(void *environment, fmi2Status status);
    void *componentEnvironment;
} fmi2Callbacks;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsChanged, valuesChanged, nextEventTimeDefined;
    double nextEventTime;
} fmi2EventInfo;

#define FMI2(name) EXPORTED fmi2Status NAMED(name)

typedef enum { INSTANTIATED, INITIALIZATION, EVENT, CONTINUOUS_TIME, STEP, TERMINATED } Mode;

typedef struct {
    Model model;
    Mode mode;
    int exchanges;                   /* model exchange, not co-simulation */
    double reached;                  /* time to which the last step came */
    char *name;
    const fmi2Callbacks *callbacks;
} Instance;

/* Messages contain no percent sign: they are formats without arguments. */
static fmi2Status say(Instance *of, fmi2Status status, const char *message)
{
    if (of->callbacks && of->callbacks->logger) {
        of->callbacks->logger(of->callbacks->componentEnvironment, of->name ? of->name : "", status,
                              status == fmi2Discard ? "logStatusDiscard" : "logStatusError", message);
    }
    return status;
}

/* A model that has no result at a state lets an integrator try another one, but co-simulation cannot. */
static fmi2Status status_of(Instance *of, int code)
{
    if (code == MODEL_OK) {
        return fmi2OK;
    }
    if (code == UNKNOWN_VARIABLE) {
        return say(of, fmi2Error, "There is no variable with this value reference.");
    }
    return say(of, of->exchanges && of->mode == CONTINUOUS_TIME ? fmi2Discard : fmi2Error, reason(code));
}

static fmi2Status wrong_mode(Instance *of)
{
    return say(of, fmi2Error, "This function must not be called in the present state of the instance.");
}

static fmi2Status wrong_size(Instance *of)
{
    return say(of, fmi2Error, "The number of values is not that of the variables.");
}

static fmi2Status none(Instance *of, size_t count)
{
    return count ? say(of, fmi2Error, "The model has no variables of this type.") : fmi2OK;
}

static fmi2Status unsupported(fmi2Component instance)
{
    return say((Instance *)instance, fmi2Error, "The model does not have what this function is for.");
}

/* ---- versions, instances, modes */

EXPORTED const char *NAMED(fmi2GetTypesPlatform)(void)
{
    return "default";
}

EXPORTED const char *NAMED(fmi2GetVersion)(void)
{
    return "2.0";
}

FMI2(fmi2SetDebugLogging)(fmi2Component instance, fmi2Boolean on, size_t count, const fmi2String categories[])
{
    (void)instance;
    (void)on;
    (void)count;
    (void)categories;
    return fmi2OK;
}

EXPORTED void NAMED(fmi2FreeInstance)(fmi2Component instance)
{
    if (instance) {
        free(((Instance *)instance)->name);
        free(instance);
    }
}

EXPORTED fmi2Component NAMED(fmi2Instantiate)(
    fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources, const fmi2Callbacks *callbacks,
    fmi2Boolean visible, fmi2Boolean logging)
{
    Instance *of = (Instance *)calloc(1, sizeof(Instance));
    (void)resources;
    (void)visible;
    (void)logging;
    if (!of) {
        return NULL;
    }
    of->exchanges = type == fmi2ModelExchange;
    of->callbacks = callbacks;
    if (name) {
        of->name = (char *)malloc(strlen(name) + 1);
        if (of->name) {
            memcpy(of->name, name, strlen(name) + 1);
        }
    }
    if (!guid || strcmp(guid, MODEL_TOKEN)) {
        say(of, fmi2Error, "The GUID is not that of this FMU.");
        NAMED(fmi2FreeInstance)(of);
        return NULL;
    }
    model_start(&of->model, 0.0);
    return of;
}

FMI2(fmi2SetupExperiment)(fmi2Component instance, fmi2Boolean has_tolerance, double tolerance, double start,
                          fmi2Boolean has_stop, double stop)
{
    Instance *of = (Instance *)instance;
    (void)has_tolerance;
    (void)tolerance;
    (void)has_stop;
    (void)stop;
    if (of->mode != INSTANTIATED) {
        return wrong_mode(of);
    }
    of->model.time = of->reached = start;
    return fmi2OK;
}

FMI2(fmi2EnterInitializationMode)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode != INSTANTIATED) {
        return wrong_mode(of);
    }
    of->mode = INITIALIZATION;
    return fmi2OK;
}

FMI2(fmi2ExitInitializationMode)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    int code;
    if (of->mode != INITIALIZATION) {
        return wrong_mode(of);
    }
    code = model_accept(&of->model);
    if (code != MODEL_OK) {
        return status_of(of, code);
    }
    of->mode = of->exchanges ? EVENT : STEP;
    return fmi2OK;
}

FMI2(fmi2EnterEventMode)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode != CONTINUOUS_TIME && of->mode != EVENT) {
        return wrong_mode(of);
    }
    of->mode = EVENT;
    return fmi2OK;
}

FMI2(fmi2EnterContinuousTimeMode)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode != EVENT) {
        return wrong_mode(of);
    }
    of->mode = CONTINUOUS_TIME;
    return fmi2OK;
}

FMI2(fmi2Terminate)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode == INSTANTIATED || of->mode == INITIALIZATION || of->mode == TERMINATED) {
        return wrong_mode(of);
    }
    of->mode = TERMINATED;
    return fmi2OK;
}

FMI2(fmi2Reset)(fmi2Component instance)
{
    Instance *of = (Instance *)instance;
    model_start(&of->model, 0.0);
    of->reached = 0.0;
    of->mode = INSTANTIATED;
    return fmi2OK;
}

/* ---- variables */

FMI2(fmi2GetReal)(fmi2Component instance, const fmi2Reference references[], size_t count, double values[])
{
    Instance *of = (Instance *)instance;
    size_t k;
    for (k = 0; k < count; ++k) {
        const int code = model_get(&of->model, references[k], &values[k]);
        if (code != MODEL_OK) {
            model_clear(values, count);
            return status_of(of, code);
        }
    }
    return fmi2OK;
}

FMI2(fmi2SetReal)(fmi2Component instance, const fmi2Reference references[], size_t count, const double values[])
{
    Instance *of = (Instance *)instance;
    size_t k;
    for (k = 0; k < count; ++k) {
        if (!model_set(&of->model, references[k], values[k], of->mode == INSTANTIATED || of->mode == INITIALIZATION)) {
            return say(of, fmi2Error, "This variable cannot be set: inputs can, and states before initialisation ends.");
        }
    }
    return fmi2OK;
}

#define WITHOUT_VARIABLES(name, type)                                                                                  \
    FMI2(fmi2Get##name)(fmi2Component instance, const fmi2Reference references[], size_t count, type values[])        \
    {                                                                                                                  \
        (void)references;                                                                                              \
        (void)values;                                                                                                  \
        return none((Instance *)instance, count);                                                                      \
    }                                                                                                                  \
    FMI2(fmi2Set##name)(fmi2Component instance, const fmi2Reference references[], size_t count, const type values[])  \
    {                                                                                                                  \
        (void)references;                                                                                              \
        (void)values;                                                                                                  \
        return none((Instance *)instance, count);                                                                      \
    }

WITHOUT_VARIABLES(Integer, int)
WITHOUT_VARIABLES(Boolean, fmi2Boolean)
WITHOUT_VARIABLES(String, fmi2String)

/* ---- states of the instance */

FMI2(fmi2GetFMUstate)(fmi2Component instance, fmi2State *state)
{
    Instance *of = (Instance *)instance;
    if (!*state) {
        *state = malloc(sizeof(Snapshot));
    }
    if (!*state) {
        return say(of, fmi2Error, "There is no memory left.");
    }
    take_snapshot((Snapshot *)*state, &of->model, of->mode);
    return fmi2OK;
}

FMI2(fmi2SetFMUstate)(fmi2Component instance, fmi2State state)
{
    Instance *of = (Instance *)instance;
    if (!state || !is_snapshot((Snapshot *)state)) {
        return say(of, fmi2Error, "This is no state of this FMU.");
    }
    of->model = ((Snapshot *)state)->model;
    of->mode = (Mode)((Snapshot *)state)->mode;
    of->reached = of->model.time;
    return fmi2OK;
}

FMI2(fmi2FreeFMUstate)(fmi2Component instance, fmi2State *state)
{
    (void)instance;
    if (state) {
        free(*state);
        *state = NULL;
    }
    return fmi2OK;
}

FMI2(fmi2SerializedFMUstateSize)(fmi2Component instance, fmi2State state, size_t *size)
{
    (void)instance;
    (void)state;
    *size = sizeof(Snapshot);
    return fmi2OK;
}

FMI2(fmi2SerializeFMUstate)(fmi2Component instance, fmi2State state, fmi2Byte bytes[], size_t size)
{
    if (!state || size != sizeof(Snapshot)) {
        return wrong_size((Instance *)instance);
    }
    memcpy(bytes, state, size);
    return fmi2OK;
}

FMI2(fmi2DeSerializeFMUstate)(fmi2Component instance, const fmi2Byte bytes[], size_t size, fmi2State *state)
{
    Instance *of = (Instance *)instance;
    Snapshot read;
    if (size != sizeof(Snapshot)) {
        return wrong_size(of);
    }
    memcpy(&read, bytes, size);
    if (!is_snapshot(&read)) {
        return say(of, fmi2Error, "This is no state of this FMU.");
    }
    if (!*state) {
        *state = malloc(sizeof(Snapshot));
    }
    if (!*state) {
        return say(of, fmi2Error, "There is no memory left.");
    }
    memcpy(*state, &read, size);
    return fmi2OK;
}

/* ---- partial derivatives */

FMI2(fmi2GetDirectionalDerivative)(fmi2Component instance, const fmi2Reference unknowns[], size_t n_unknowns,
                                   const fmi2Reference knowns[], size_t n_knowns, const double seed[],
                                   double sensitivity[])
{
    Instance *of = (Instance *)instance;
    const int code = model_compute(&of->model, PARTIALS);
    size_t i, k;
    int good = 1;
    if (code != MODEL_OK) {
        model_clear(sensitivity, n_unknowns);
        return status_of(of, code);
    }
    for (i = 0; i < n_unknowns; ++i) {
        sensitivity[i] = 0.0;
        for (k = 0; k < n_knowns; ++k) {
            sensitivity[i] += model_partial(&of->model, unknowns[i], knowns[k], &good) * seed[k];
        }
    }
    if (!good) {
        model_clear(sensitivity, n_unknowns);
    }
    return good ? fmi2OK : say(of, fmi2Error, "Unknowns are derivatives and outputs, knowns are states and inputs.");
}

/* ---- model exchange */

FMI2(fmi2NewDiscreteStates)(fmi2Component instance, fmi2EventInfo *info)
{
    (void)instance;
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

FMI2(fmi2CompletedIntegratorStep)(fmi2Component instance, fmi2Boolean final, fmi2Boolean *enter_event_mode,
                                  fmi2Boolean *terminate)
{
    Instance *of = (Instance *)instance;
    (void)final;
    *enter_event_mode = *terminate = 0;
    if (of->mode != CONTINUOUS_TIME) {
        return wrong_mode(of);
    }
    return status_of(of, model_accept(&of->model));
}

FMI2(fmi2SetTime)(fmi2Component instance, double time)
{
    Instance *of = (Instance *)instance;
    if (of->mode != CONTINUOUS_TIME && of->mode != EVENT) {
        return wrong_mode(of);
    }
    of->model.time = time;
    return fmi2OK;
}

FMI2(fmi2SetContinuousStates)(fmi2Component instance, const double x[], size_t count)
{
    Instance *of = (Instance *)instance;
    if (count != NX) {
        return wrong_size(of);
    }
    if (of->mode != CONTINUOUS_TIME && of->mode != EVENT) {
        return wrong_mode(of);
    }
    memcpy(of->model.x, x, sizeof of->model.x);
    of->model.valid = 0;
    return fmi2OK;
}

FMI2(fmi2GetContinuousStates)(fmi2Component instance, double x[], size_t count)
{
    Instance *of = (Instance *)instance;
    if (count != NX) {
        return wrong_size(of);
    }
    memcpy(x, of->model.x, sizeof of->model.x);
    return fmi2OK;
}

FMI2(fmi2GetDerivatives)(fmi2Component instance, double derivatives[], size_t count)
{
    Instance *of = (Instance *)instance;
    int code;
    if (count != NX) {
        return wrong_size(of);
    }
    code = model_compute(&of->model, RATES);
    if (code == MODEL_OK) {
        memcpy(derivatives, of->model.rates, sizeof of->model.rates);
    } else {
        model_clear(derivatives, count);
    }
    return status_of(of, code);
}

FMI2(fmi2GetNominalsOfContinuousStates)(fmi2Component instance, double nominals[], size_t count)
{
    size_t k;
    if (count != NX) {
        return wrong_size((Instance *)instance);
    }
    for (k = 0; k < count; ++k) {
        nominals[k] = 1.0;
    }
    return fmi2OK;
}

FMI2(fmi2GetEventIndicators)(fmi2Component instance, double indicators[], size_t count)
{
    (void)indicators;
    return count ? wrong_size((Instance *)instance) : fmi2OK;
}

/* ---- co-simulation */

FMI2(fmi2SetRealInputDerivatives)(fmi2Component instance, const fmi2Reference references[], size_t count,
                                  const int orders[], const double values[])
{
    (void)references;
    (void)count;
    (void)orders;
    (void)values;
    return unsupported(instance);
}

FMI2(fmi2GetRealOutputDerivatives)(fmi2Component instance, const fmi2Reference references[], size_t count,
                                   const int orders[], double values[])
{
    (void)references;
    (void)count;
    (void)orders;
    (void)values;
    return unsupported(instance);
}

FMI2(fmi2DoStep)(fmi2Component instance, double time, double h, fmi2Boolean final)
{
    Instance *of = (Instance *)instance;
    (void)final;
    if (of->mode != STEP) {
        return wrong_mode(of);
    }
    if (!(h >= 0.0 && h <= 1e9 && fabs(time - of->model.time) <= 1e-6 * (1.0 + fabs(time)))) {
        return say(of, fmi2Error, "A step begins where the last one has ended, and goes forward.");
    }
    of->model.time = time;
    return status_of(of, model_advance(&of->model, h, &of->reached));
}

FMI2(fmi2CancelStep)(fmi2Component instance)
{
    return unsupported(instance);
}

FMI2(fmi2GetStatus)(fmi2Component instance, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)kind;
    (void)value;
    return unsupported(instance);
}

FMI2(fmi2GetRealStatus)(fmi2Component instance, const fmi2StatusKind kind, double *value)
{
    if (kind != fmi2LastSuccessfulTime) {
        return unsupported(instance);
    }
    *value = ((Instance *)instance)->reached;
    return fmi2OK;
}

FMI2(fmi2GetIntegerStatus)(fmi2Component instance, const fmi2StatusKind kind, int *value)
{
    (void)kind;
    (void)value;
    return unsupported(instance);
}

FMI2(fmi2GetBooleanStatus)(fmi2Component instance, const fmi2StatusKind kind, fmi2Boolean *value)
{
    if (kind != fmi2Terminated) {
        return unsupported(instance);
    }
    *value = 0;
    return fmi2OK;
}

FMI2(fmi2GetStringStatus)(fmi2Component instance, const fmi2StatusKind kind, fmi2String *value)
{
    (void)kind;
    (void)value;
    return unsupported(instance);
}
