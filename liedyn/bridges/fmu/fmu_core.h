/* One instance of the model, the same for both versions of FMI: from the states to the configuration, its velocity, the
 * derivatives, the outputs and their partial derivatives, each computed when it is first asked for.
 *
 * fmu_model.h, which is written for each robot, has the sizes, the tables and the programs: MODEL(close) and so on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmu_model.h"

enum { LOCATED = 1, RATES = 2, OUTPUTS = 4, PARTIALS = 8 };
enum { OF_TIME, OF_STATE, OF_RATE, OF_INPUT, OF_OUTPUT, UNKNOWN };

/* Largest part of the way of an independent coordinate, in one part of the way to a new configuration; largest change of
 * a dependent one without suspecting another branch [rad, or units of length]; and the smallest part. */
#define LARGEST_PART 0.1
#define LARGEST_JUMP 1.0
#define SMALLEST_PART 1e-3

typedef struct {
    double time, x[NX], u[NU_ROOM];
    double known[NQ];                /* a closed configuration: that of the last step that was accepted */
    double q[NQ], v[NV];             /* at x, if LOCATED */
    double rates[NX], z[NZ_ROOM], J[(NX + NZ) * (NX + NU)];
    int valid;                       /* which of these are */
} Model;

static const char *reason(int code)
{
    switch (code) {
    case MODEL_NOT_FINITE:
        return "a state, an input or a result is not a finite number, or too large.";
    case MODEL_GUARD:
        return "this state needs other decisions than the reference states: it is near a singular configuration, or far "
               "from them. Export the FMU with more configurations in the argument at.";
    case MODEL_NOT_CLOSED:
        return "the loops cannot be closed with these independent coordinates.";
    default:
        return "no result.";
    }
}

static void model_start(Model *m, double time)
{
    int k;
    m->time = time;
    m->valid = 0;
    for (k = 0; k < NQ; ++k) {
        m->known[k] = start_q[k];
    }
    for (k = 0; k < NX; ++k) {
        m->x[k] = k < NY ? start_q[state_places[k]] : start_w[k - NY];
    }
    for (k = 0; k < NU; ++k) {
        m->u[k] = 0.0;
    }
}

/* Moves the closed q to other independent coordinates y, on its branch: in parts, each of which is closed before the
 * next one. */
static int model_move(const double *y, double *q)
{
    double begin[NY], trial[NQ], closed[NQ], way = 0.0, done = 0.0, part;
    int k;
    for (k = 0; k < NY; ++k) {
        const double far = fabs(y[k] - q[state_places[k]]) / q_unit[state_places[k]];
        begin[k] = q[state_places[k]];
        if (!(far <= 1e50)) {
            return MODEL_NOT_FINITE;
        }
        way = far > way ? far : way;
    }
    part = way > LARGEST_PART && MODEL_CLOSES ? LARGEST_PART / way : 1.0;
    while (done < 1.0) {
        const double next = done + part < 1.0 ? done + part : 1.0;
        double jump = 0.0;
        int code;
        for (k = 0; k < NQ; ++k) {
            trial[k] = q[k];
        }
        for (k = 0; k < NY; ++k) {
            trial[state_places[k]] = next < 1.0 ? begin[k] + next * (y[k] - begin[k]) : y[k];
        }
        code = MODEL(close)(trial, closed);
        for (k = 0; k < NQ && code == MODEL_OK; ++k) {
            const double x = fabs(closed[k] - trial[k]) / q_unit[k];
            jump = x > jump ? x : jump;
        }
        if (code == MODEL_OK && !(jump > LARGEST_JUMP && MODEL_CLOSES)) {
            for (k = 0; k < NQ; ++k) {
                q[k] = closed[k];
            }
            done = next;
            part *= 2.0;
        } else {
            part *= 0.5;
            if (code == MODEL_NOT_FINITE || !MODEL_CLOSES || part * way < SMALLEST_PART * LARGEST_PART) {
                return code == MODEL_OK ? MODEL_NOT_CLOSED : code;
            }
        }
    }
    return MODEL_OK;
}

/* q and v at the states. */
static int model_locate(Model *m)
{
    int k, code;
    if (m->valid & LOCATED) {
        return MODEL_OK;
    }
    for (k = 0; k < NQ; ++k) {
        m->q[k] = m->known[k];
    }
    code = model_move(m->x, m->q);
    code = code == MODEL_OK ? MODEL(velocity)(m->q, m->x + NY, m->v) : code;
    m->valid |= code == MODEL_OK ? LOCATED : 0;
    return code;
}

static void model_forces(const Model *m, double *tau)
{
    int j, k;
    for (j = 0; j < NF; ++j) {
        tau[j] = 0.0;
        for (k = 0; k < NU; ++k) {
            tau[j] += actuators[j * NU + k] * m->u[k];
        }
    }
}

/* The derivatives of the states, or the outputs. */
static int model_motion(Model *m, const double *tau, int what)
{
    double a[NV], lam[LAM_ROOM] = {0.0}, q_dot[NQ];
    int k, code;
#if MODEL_CLOSES
    code = MODEL(forward_dynamics)(m->q, m->v, tau, a, lam);
#else
    code = MODEL(forward_dynamics)(m->q, m->v, tau, a);
#endif
#if NZ > 0
    if (what == OUTPUTS) {
        return code == MODEL_OK ? MODEL(outputs)(m->q, m->v, a, lam, m->z) : code;
    }
#endif
    (void)what;
    (void)lam;
    code = code == MODEL_OK ? MODEL(coordinate_rates)(m->q, m->v, q_dot) : code;
    for (k = 0; k < NX && code == MODEL_OK; ++k) {
        m->rates[k] = k < NY ? q_dot[state_places[k]] : a[speed_places[k - NY]];
    }
    return code;
}

/* Makes one of RATES, OUTPUTS or PARTIALS valid. */
static int model_compute(Model *m, int what)
{
    double tau[NF];
    int code = model_locate(m);
    if (code != MODEL_OK || (m->valid & what) == what) {
        return code;
    }
    model_forces(m, tau);
    code = what == PARTIALS ? MODEL(partials)(m->q, m->v, tau, m->J) : model_motion(m, tau, what);
    m->valid |= code == MODEL_OK ? what : 0;
    return code;
}

/* The configuration here is where the search for the next one begins. */
static int model_accept(Model *m)
{
    const int code = model_locate(m);
    int k;
    for (k = 0; k < NQ && code == MODEL_OK; ++k) {
        m->known[k] = m->q[k];
    }
    return code;
}

/* From here to time + h with constant inputs, in equal steps no longer than INTERNAL_STEP; *reached is as far as it
 * came. */
static int model_advance(Model *m, double h, double *reached)
{
    const double begin = m->time, count = h > 0.0 ? ceil(h / INTERNAL_STEP - 1e-6) : 0.0;
    double tau[NF], q[NQ], v[NV], k;
    int i, code = model_accept(m);
    *reached = begin;
    model_forces(m, tau);
    for (k = 0.0; code == MODEL_OK && k < count; k += 1.0) {
        code = MODEL(step)(m->q, m->v, tau, h / count, q, v);
        if (code == MODEL_OK) {
            for (i = 0; i < NQ; ++i) {
                m->q[i] = m->known[i] = q[i];
            }
            for (i = 0; i < NV; ++i) {
                m->v[i] = v[i];
            }
            for (i = 0; i < NX; ++i) {
                m->x[i] = i < NY ? q[state_places[i]] : v[speed_places[i - NY]];
            }
            m->valid = LOCATED;
            *reached = m->time = begin + h * (k + 1.0) / count;
        }
    }
    return code;
}

static int kind_of(unsigned reference, int *k)
{
    const unsigned ends[] = {1, 1 + NX, 1 + 2 * NX, 1 + 2 * NX + NU, 1 + 2 * NX + NU + NZ};
    int what;
    for (what = OF_TIME; what < UNKNOWN; ++what) {
        if (reference < ends[what]) {
            *k = (int)(reference - (what ? ends[what - 1] : 0));
            return what;
        }
    }
    *k = 0;
    return UNKNOWN;
}

static void model_clear(double *values, size_t count)
{
    size_t k;
    for (k = 0; k < count; ++k) {
        values[k] = (double)NAN;
    }
}

/* The value of a variable; UNKNOWN_VARIABLE, or a code of the model. */
#define UNKNOWN_VARIABLE (-1)
static int model_get(Model *m, unsigned reference, double *value)
{
    int k, code = MODEL_OK;
    switch (kind_of(reference, &k)) {
    case OF_TIME:
        *value = m->time;
        return code;
    case OF_STATE:
        *value = m->x[k];
        return code;
    case OF_RATE:
        code = model_compute(m, RATES);
        *value = code == MODEL_OK ? m->rates[k] : (double)NAN;
        return code;
    case OF_INPUT:
        *value = m->u[k];
        return code;
    case OF_OUTPUT:
        code = model_compute(m, OUTPUTS);
        *value = code == MODEL_OK ? m->z[k] : (double)NAN;
        return code;
    default:
        return UNKNOWN_VARIABLE;
    }
}

/* Changes a state or an input; 0 if the variable is neither. */
static int model_set(Model *m, unsigned reference, double value, int states_too)
{
    int k;
    const int what = kind_of(reference, &k);
    if (what == OF_INPUT) {
        if (m->u[k] != value) {
            m->u[k] = value;
            m->valid &= LOCATED;
        }
        return 1;
    }
    if (what == OF_STATE && states_too) {
        m->x[k] = value;
        m->valid = 0;
        return 1;
    }
    return 0;
}

/* The row of J of an unknown, or the state that it is (*state, else -1); -1 if it is no unknown. */
static int row_of(unsigned reference, int *state)
{
    int k;
    const int what = kind_of(reference, &k);
    *state = what == OF_STATE ? k : -1;
    return what == OF_STATE || what == OF_RATE ? k : what == OF_OUTPUT ? NX + k : -1;
}

static int column_of(unsigned reference)
{
    int k;
    const int what = kind_of(reference, &k);
    return what == OF_STATE ? k : what == OF_INPUT ? NX + k : -1;
}

/* The derivative of an unknown by a known; *good becomes 0 if they are not such. */
static double model_partial(const Model *m, unsigned unknown, unsigned known, int *good)
{
    int state;
    const int row = row_of(unknown, &state), column = column_of(known);
    if (row < 0 || column < 0) {
        *good = 0;
        return 0.0;
    }
    return state >= 0 ? (state == column ? 1.0 : 0.0) : m->J[row * (NX + NU) + column];
}

/* The states of an instance between two calls, as bytes. */
typedef struct {
    char token[sizeof MODEL_TOKEN];
    int mode;
    Model model;
} Snapshot;

static void take_snapshot(Snapshot *to, const Model *model, int mode)
{
    memset(to, 0, sizeof *to);
    memcpy(to->token, MODEL_TOKEN, sizeof MODEL_TOKEN);
    to->mode = mode;
    memcpy(&to->model, model, sizeof *model);
}

static int is_snapshot(const Snapshot *of)
{
    return memcmp(of->token, MODEL_TOKEN, sizeof MODEL_TOKEN) == 0;
}
