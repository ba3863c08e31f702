/* The functions of FMI 3.0 for model exchange and co-simulation. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fmu_core.h"

/* Names begin with a prefix where several FMUs are linked into one program. */
#ifdef FMI3_FUNCTION_PREFIX
#define PASTED(a, b) a##b
#define PASTE(a, b) PASTED(a, b)
#define NAMED(name) PASTE(FMI3_FUNCTION_PREFIX, name)
#else
#define NAMED(name) name
#endif
#if defined(FMI3_Export)
#define EXPORTED FMI3_Export
#elif defined(FMI3_FUNCTION_PREFIX)
#define EXPORTED
#elif defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#elif defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

/* The types of the standard. */
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef void *fmi3Instance;
typedef void *fmi3Environment;
typedef void *fmi3State;
typedef uint32_t fmi3Reference;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef void (*fmi3Log)(fmi3Environment, fmi3Status, fmi3String category, fmi3String message);
typedef void (*fmi3Update)(fmi3Environment, double, bool, bool, bool, bool, bool *, double *);
typedef void (*fmi3Clock)(fmi3Environment);
typedef void (*fmi3Lock)(void);

#define FMI3(name) EXPORTED fmi3Status NAMED(name)

typedef enum { INSTANTIATED, INITIALIZATION, EVENT, CONTINUOUS_TIME, STEP, TERMINATED } Mode;

typedef struct {
    Model model;
    Mode mode;
    bool exchanges;                  /* model exchange, not co-simulation */
    fmi3Environment environment;
    fmi3Log log;
} Instance;

static fmi3Status say(Instance *of, fmi3Status status, const char *message)
{
    if (of->log) {
        of->log(of->environment, status, status == fmi3Discard ? "logStatusDiscard" : "logStatusError", message);
    }
    return status;
}

/* A model that has no result at a state lets an integrator try another one, but co-simulation cannot. */
static fmi3Status status_of(Instance *of, int code)
{
    if (code == MODEL_OK) {
        return fmi3OK;
    }
    if (code == UNKNOWN_VARIABLE) {
        return say(of, fmi3Error, "There is no variable with this value reference.");
    }
    return say(of, of->exchanges && of->mode == CONTINUOUS_TIME ? fmi3Discard : fmi3Error, reason(code));
}

static fmi3Status wrong_mode(Instance *of)
{
    return say(of, fmi3Error, "This function must not be called in the present state of the instance.");
}

static fmi3Status wrong_size(Instance *of)
{
    return say(of, fmi3Error, "The number of values is not that of the variables.");
}

static fmi3Status none(Instance *of, size_t count)
{
    return count ? say(of, fmi3Error, "The model has no variables of this type.") : fmi3OK;
}

static fmi3Status unsupported(fmi3Instance instance)
{
    return say((Instance *)instance, fmi3Error, "The model does not have what this function is for.");
}

/* ---- versions, instances, modes */

EXPORTED const char *NAMED(fmi3GetVersion)(void)
{
    return "3.0";
}

FMI3(fmi3SetDebugLogging)(fmi3Instance instance, bool on, size_t count, const fmi3String categories[])
{
    (void)instance;
    (void)on;
    (void)count;
    (void)categories;
    return fmi3OK;
}

static fmi3Instance instantiated(fmi3String token, bool exchanges, fmi3Environment environment, fmi3Log log)
{
    Instance *of = (Instance *)calloc(1, sizeof(Instance));
    if (!of) {
        return NULL;
    }
    of->exchanges = exchanges;
    of->environment = environment;
    of->log = log;
    if (!token || strcmp(token, MODEL_TOKEN)) {
        say(of, fmi3Error, "The instantiation token is not that of this FMU.");
        free(of);
        return NULL;
    }
    model_start(&of->model, 0.0);
    return of;
}

EXPORTED fmi3Instance NAMED(fmi3InstantiateModelExchange)(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, fmi3Environment environment,
    fmi3Log log)
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    return instantiated(token, true, environment, log);
}

EXPORTED fmi3Instance NAMED(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, bool events, bool early,
    const fmi3Reference required[], size_t count, fmi3Environment environment, fmi3Log log, fmi3Update update)
{
    (void)name;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)events;
    (void)early;
    (void)required;
    (void)count;
    (void)update;
    return instantiated(token, false, environment, log);
}

EXPORTED fmi3Instance NAMED(fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String resources, bool visible, bool logging, fmi3Environment environment,
    fmi3Log log, fmi3Clock clock, fmi3Lock lock, fmi3Lock unlock)
{
    (void)name;
    (void)token;
    (void)resources;
    (void)visible;
    (void)logging;
    (void)clock;
    (void)lock;
    (void)unlock;
    if (log) {
        log(environment, fmi3Error, "logStatusError", "This FMU is not for scheduled execution.");
    }
    return NULL;
}

EXPORTED void NAMED(fmi3FreeInstance)(fmi3Instance instance)
{
    free(instance);
}

FMI3(fmi3EnterInitializationMode)(fmi3Instance instance, bool has_tolerance, double tolerance, double start,
                                  bool has_stop, double stop)
{
    Instance *of = (Instance *)instance;
    (void)has_tolerance;
    (void)tolerance;
    (void)has_stop;
    (void)stop;
    if (of->mode != INSTANTIATED) {
        return wrong_mode(of);
    }
    of->model.time = start;
    of->mode = INITIALIZATION;
    return fmi3OK;
}

FMI3(fmi3ExitInitializationMode)(fmi3Instance instance)
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
    return fmi3OK;
}

FMI3(fmi3EnterEventMode)(fmi3Instance instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode != CONTINUOUS_TIME) {
        return wrong_mode(of);
    }
    of->mode = EVENT;
    return fmi3OK;
}

FMI3(fmi3EnterContinuousTimeMode)(fmi3Instance instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode != EVENT) {
        return wrong_mode(of);
    }
    of->mode = CONTINUOUS_TIME;
    return fmi3OK;
}

FMI3(fmi3EnterStepMode)(fmi3Instance instance)
{
    return wrong_mode((Instance *)instance);
}

FMI3(fmi3EnterConfigurationMode)(fmi3Instance instance)
{
    return unsupported(instance);
}

FMI3(fmi3ExitConfigurationMode)(fmi3Instance instance)
{
    return unsupported(instance);
}

FMI3(fmi3Terminate)(fmi3Instance instance)
{
    Instance *of = (Instance *)instance;
    if (of->mode == INSTANTIATED || of->mode == INITIALIZATION || of->mode == TERMINATED) {
        return wrong_mode(of);
    }
    of->mode = TERMINATED;
    return fmi3OK;
}

FMI3(fmi3Reset)(fmi3Instance instance)
{
    Instance *of = (Instance *)instance;
    model_start(&of->model, 0.0);
    of->mode = INSTANTIATED;
    return fmi3OK;
}

/* ---- variables */

FMI3(fmi3GetFloat64)(fmi3Instance instance, const fmi3Reference references[], size_t count, double values[],
                     size_t size)
{
    Instance *of = (Instance *)instance;
    size_t k;
    if (size != count) {
        return wrong_size(of);
    }
    for (k = 0; k < count; ++k) {
        const int code = model_get(&of->model, references[k], &values[k]);
        if (code != MODEL_OK) {
            model_clear(values, count);
            return status_of(of, code);
        }
    }
    return fmi3OK;
}

FMI3(fmi3SetFloat64)(fmi3Instance instance, const fmi3Reference references[], size_t count, const double values[],
                     size_t size)
{
    Instance *of = (Instance *)instance;
    size_t k;
    if (size != count) {
        return wrong_size(of);
    }
    for (k = 0; k < count; ++k) {
        if (!model_set(&of->model, references[k], values[k], of->mode == INSTANTIATED || of->mode == INITIALIZATION)) {
            return say(of, fmi3Error, "This variable cannot be set: inputs can, and states before initialisation ends.");
        }
    }
    return fmi3OK;
}

#define WITHOUT_VARIABLES(name, type)                                                                                  \
    FMI3(fmi3Get##name)(fmi3Instance instance, const fmi3Reference references[], size_t count, type values[],         \
                        size_t size)                                                                                   \
    {                                                                                                                  \
        (void)references;                                                                                              \
        (void)values;                                                                                                  \
        (void)size;                                                                                                    \
        return none((Instance *)instance, count);                                                                      \
    }                                                                                                                  \
    FMI3(fmi3Set##name)(fmi3Instance instance, const fmi3Reference references[], size_t count, const type values[],   \
                        size_t size)                                                                                   \
    {                                                                                                                  \
        (void)references;                                                                                              \
        (void)values;                                                                                                  \
        (void)size;                                                                                                    \
        return none((Instance *)instance, count);                                                                      \
    }

WITHOUT_VARIABLES(Float32, float)
WITHOUT_VARIABLES(Int8, int8_t)
WITHOUT_VARIABLES(UInt8, uint8_t)
WITHOUT_VARIABLES(Int16, int16_t)
WITHOUT_VARIABLES(UInt16, uint16_t)
WITHOUT_VARIABLES(Int32, int32_t)
WITHOUT_VARIABLES(UInt32, uint32_t)
WITHOUT_VARIABLES(Int64, int64_t)
WITHOUT_VARIABLES(UInt64, uint64_t)
WITHOUT_VARIABLES(Boolean, bool)
WITHOUT_VARIABLES(String, fmi3String)

FMI3(fmi3GetBinary)(fmi3Instance instance, const fmi3Reference references[], size_t count, size_t sizes[],
                    const fmi3Byte *values[], size_t size)
{
    (void)references;
    (void)sizes;
    (void)values;
    (void)size;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetBinary)(fmi3Instance instance, const fmi3Reference references[], size_t count, const size_t sizes[],
                    const fmi3Byte *const values[], size_t size)
{
    (void)references;
    (void)sizes;
    (void)values;
    (void)size;
    return none((Instance *)instance, count);
}

FMI3(fmi3GetClock)(fmi3Instance instance, const fmi3Reference references[], size_t count, bool values[])
{
    (void)references;
    (void)values;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetClock)(fmi3Instance instance, const fmi3Reference references[], size_t count, const bool values[])
{
    (void)references;
    (void)values;
    return none((Instance *)instance, count);
}

FMI3(fmi3GetNumberOfVariableDependencies)(fmi3Instance instance, fmi3Reference reference, size_t *count)
{
    (void)reference;
    (void)count;
    return unsupported(instance);
}

FMI3(fmi3GetVariableDependencies)(fmi3Instance instance, fmi3Reference dependent, size_t elements[],
                                  fmi3Reference independents[], size_t of_independents[], int kinds[], size_t count)
{
    (void)dependent;
    (void)elements;
    (void)independents;
    (void)of_independents;
    (void)kinds;
    (void)count;
    return unsupported(instance);
}

/* ---- states of the instance */

FMI3(fmi3GetFMUState)(fmi3Instance instance, fmi3State *state)
{
    Instance *of = (Instance *)instance;
    if (!*state) {
        *state = malloc(sizeof(Snapshot));
    }
    if (!*state) {
        return say(of, fmi3Error, "There is no memory left.");
    }
    take_snapshot((Snapshot *)*state, &of->model, of->mode);
    return fmi3OK;
}

FMI3(fmi3SetFMUState)(fmi3Instance instance, fmi3State state)
{
    Instance *of = (Instance *)instance;
    if (!state || !is_snapshot((Snapshot *)state)) {
        return say(of, fmi3Error, "This is no state of this FMU.");
    }
    of->model = ((Snapshot *)state)->model;
    of->mode = (Mode)((Snapshot *)state)->mode;
    return fmi3OK;
}

FMI3(fmi3FreeFMUState)(fmi3Instance instance, fmi3State *state)
{
    (void)instance;
    if (state) {
        free(*state);
        *state = NULL;
    }
    return fmi3OK;
}

FMI3(fmi3SerializedFMUStateSize)(fmi3Instance instance, fmi3State state, size_t *size)
{
    (void)instance;
    (void)state;
    *size = sizeof(Snapshot);
    return fmi3OK;
}

FMI3(fmi3SerializeFMUState)(fmi3Instance instance, fmi3State state, fmi3Byte bytes[], size_t size)
{
    if (!state || size != sizeof(Snapshot)) {
        return wrong_size((Instance *)instance);
    }
    memcpy(bytes, state, size);
    return fmi3OK;
}

FMI3(fmi3DeserializeFMUState)(fmi3Instance instance, const fmi3Byte bytes[], size_t size, fmi3State *state)
{
    Instance *of = (Instance *)instance;
    Snapshot read;
    if (size != sizeof(Snapshot)) {
        return wrong_size(of);
    }
    memcpy(&read, bytes, size);
    if (!is_snapshot(&read)) {
        return say(of, fmi3Error, "This is no state of this FMU.");
    }
    if (!*state) {
        *state = malloc(sizeof(Snapshot));
    }
    if (!*state) {
        return say(of, fmi3Error, "There is no memory left.");
    }
    memcpy(*state, &read, size);
    return fmi3OK;
}

/* ---- partial derivatives */

/* sums[i] = sum of the derivatives of i by k, or of k by i, times seed[k]. */
static fmi3Status derivatives(Instance *of, const fmi3Reference to[], size_t rows, const fmi3Reference from[],
                              size_t columns, const double seed[], double sums[], bool adjoint)
{
    const int code = model_compute(&of->model, PARTIALS);
    size_t i, k;
    int good = 1;
    if (code != MODEL_OK) {
        model_clear(sums, rows);
        return status_of(of, code);
    }
    for (i = 0; i < rows; ++i) {
        sums[i] = 0.0;
        for (k = 0; k < columns; ++k) {
            const double x = adjoint ? model_partial(&of->model, from[k], to[i], &good)
                                     : model_partial(&of->model, to[i], from[k], &good);
            sums[i] += x * seed[k];
        }
    }
    if (!good) {
        model_clear(sums, rows);
    }
    return good ? fmi3OK : say(of, fmi3Error, "Unknowns are derivatives and outputs, knowns are states and inputs.");
}

FMI3(fmi3GetDirectionalDerivative)(fmi3Instance instance, const fmi3Reference unknowns[], size_t n_unknowns,
                                   const fmi3Reference knowns[], size_t n_knowns, const double seed[], size_t n_seed,
                                   double sensitivity[], size_t n_sensitivity)
{
    if (n_seed != n_knowns || n_sensitivity != n_unknowns) {
        return wrong_size((Instance *)instance);
    }
    return derivatives((Instance *)instance, unknowns, n_unknowns, knowns, n_knowns, seed, sensitivity, false);
}

FMI3(fmi3GetAdjointDerivative)(fmi3Instance instance, const fmi3Reference unknowns[], size_t n_unknowns,
                               const fmi3Reference knowns[], size_t n_knowns, const double seed[], size_t n_seed,
                               double sensitivity[], size_t n_sensitivity)
{
    if (n_seed != n_unknowns || n_sensitivity != n_knowns) {
        return wrong_size((Instance *)instance);
    }
    return derivatives((Instance *)instance, knowns, n_knowns, unknowns, n_unknowns, seed, sensitivity, true);
}

/* ---- clocks and discrete states: there are none */

FMI3(fmi3GetIntervalDecimal)(fmi3Instance instance, const fmi3Reference references[], size_t count, double intervals[],
                             int qualifiers[])
{
    (void)references;
    (void)intervals;
    (void)qualifiers;
    return none((Instance *)instance, count);
}

FMI3(fmi3GetIntervalFraction)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                              uint64_t counters[], uint64_t resolutions[], int qualifiers[])
{
    (void)references;
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    return none((Instance *)instance, count);
}

FMI3(fmi3GetShiftDecimal)(fmi3Instance instance, const fmi3Reference references[], size_t count, double shifts[])
{
    (void)references;
    (void)shifts;
    return none((Instance *)instance, count);
}

FMI3(fmi3GetShiftFraction)(fmi3Instance instance, const fmi3Reference references[], size_t count, uint64_t counters[],
                           uint64_t resolutions[])
{
    (void)references;
    (void)counters;
    (void)resolutions;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetIntervalDecimal)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                             const double intervals[])
{
    (void)references;
    (void)intervals;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetIntervalFraction)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                              const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references;
    (void)counters;
    (void)resolutions;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetShiftDecimal)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                          const double shifts[])
{
    (void)references;
    (void)shifts;
    return none((Instance *)instance, count);
}

FMI3(fmi3SetShiftFraction)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                           const uint64_t counters[], const uint64_t resolutions[])
{
    (void)references;
    (void)counters;
    (void)resolutions;
    return none((Instance *)instance, count);
}

FMI3(fmi3EvaluateDiscreteStates)(fmi3Instance instance)
{
    (void)instance;
    return fmi3OK;
}

FMI3(fmi3UpdateDiscreteStates)(fmi3Instance instance, bool *again, bool *terminate, bool *nominals, bool *values,
                               bool *has_time, double *time)
{
    (void)instance;
    *again = *terminate = *nominals = *values = *has_time = false;
    *time = 0.0;
    return fmi3OK;
}

FMI3(fmi3ActivateModelPartition)(fmi3Instance instance, fmi3Reference clock, double time)
{
    (void)clock;
    (void)time;
    return unsupported(instance);
}

/* ---- model exchange */

FMI3(fmi3CompletedIntegratorStep)(fmi3Instance instance, bool final, bool *enter_event_mode, bool *terminate)
{
    Instance *of = (Instance *)instance;
    (void)final;
    *enter_event_mode = *terminate = false;
    if (of->mode != CONTINUOUS_TIME) {
        return wrong_mode(of);
    }
    return status_of(of, model_accept(&of->model));
}

FMI3(fmi3SetTime)(fmi3Instance instance, double time)
{
    Instance *of = (Instance *)instance;
    if (of->mode != CONTINUOUS_TIME && of->mode != EVENT) {
        return wrong_mode(of);
    }
    of->model.time = time;
    return fmi3OK;
}

FMI3(fmi3SetContinuousStates)(fmi3Instance instance, const double x[], size_t count)
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
    return fmi3OK;
}

FMI3(fmi3GetContinuousStates)(fmi3Instance instance, double x[], size_t count)
{
    Instance *of = (Instance *)instance;
    if (count != NX) {
        return wrong_size(of);
    }
    memcpy(x, of->model.x, sizeof of->model.x);
    return fmi3OK;
}

FMI3(fmi3GetContinuousStateDerivatives)(fmi3Instance instance, double derivatives[], size_t count)
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

FMI3(fmi3GetNominalsOfContinuousStates)(fmi3Instance instance, double nominals[], size_t count)
{
    size_t k;
    if (count != NX) {
        return wrong_size((Instance *)instance);
    }
    for (k = 0; k < count; ++k) {
        nominals[k] = 1.0;
    }
    return fmi3OK;
}

FMI3(fmi3GetEventIndicators)(fmi3Instance instance, double indicators[], size_t count)
{
    (void)indicators;
    return count ? wrong_size((Instance *)instance) : fmi3OK;
}

FMI3(fmi3GetNumberOfEventIndicators)(fmi3Instance instance, size_t *count)
{
    (void)instance;
    *count = 0;
    return fmi3OK;
}

FMI3(fmi3GetNumberOfContinuousStates)(fmi3Instance instance, size_t *count)
{
    (void)instance;
    *count = NX;
    return fmi3OK;
}

/* ---- co-simulation */

FMI3(fmi3GetOutputDerivatives)(fmi3Instance instance, const fmi3Reference references[], size_t count,
                               const int32_t orders[], double values[], size_t size)
{
    (void)references;
    (void)count;
    (void)orders;
    (void)values;
    (void)size;
    return unsupported(instance);
}

FMI3(fmi3DoStep)(fmi3Instance instance, double time, double h, bool final, bool *event, bool *terminate, bool *early,
                 double *reached)
{
    Instance *of = (Instance *)instance;
    (void)final;
    *event = *terminate = *early = false;
    *reached = of->model.time;
    if (of->mode != STEP) {
        return wrong_mode(of);
    }
    if (!(h >= 0.0 && h <= 1e9 && fabs(time - of->model.time) <= 1e-6 * (1.0 + fabs(time)))) {
        return say(of, fmi3Error, "A step begins where the last one has ended, and goes forward.");
    }
    of->model.time = time;
    return status_of(of, model_advance(&of->model, h, reached));
}
