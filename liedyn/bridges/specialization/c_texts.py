"""The parts of a generated C project that are the same for all robots: templates, whose fields are numbers and
identifiers made by `liedyn.bridges.specialization.c_names`.
"""

HEADER = """\
/* {prefix}.h: dynamics of one robot in C99, written by liedyn.generate_c.
 *
 * Robot: {title}
 *
 * SI units: angles in rad, lengths in m, masses in kg, forces in N, moments in N m. Quaternions are (x, y, z, w).
 * Velocities and accelerations of ball and free joints are body-fixed. Matrices are stored row by row.
 *
 * Every function returns {PREFIX}_OK, or a code that says why there is no result; its results are then not numbers.
 * Decisions that depend on the state, such as pivots, were made at reference states. A function asks at each call
 * whether they are right for this state too, and returns {PREFIX}_GUARD if one is not.
 * Arguments and results must not overlap. Nothing is allocated, there is no recursion and no state between calls:
 * all functions may be called from several threads, and from interrupts.
 */
#ifndef {PREFIX}_H
#define {PREFIX}_H

#ifdef __cplusplus
extern "C" {{
#endif

typedef {real} {prefix}_real;

/* Result codes. */
#define {PREFIX}_OK 0
#define {PREFIX}_NOT_FINITE 1 /* an argument, or a result, is not a finite number, or an argument is too large */
#define {PREFIX}_GUARD 2      /* the state needs other decisions than the reference states */
#define {PREFIX}_NOT_CLOSED 3 /* no closed configuration was found from this guess */

/* Sizes: numbers of a configuration, of a velocity, and of constraint rows. */
#define {PREFIX}_NQ {nq}
#define {PREFIX}_NV {nv}
#define {PREFIX}_ROWS {rows}
{more}
/* Places of the coordinates in q. */
{coordinates}
/* Places of the velocities in v, in accelerations and in generalised forces. */
{velocities}
{declarations}
#ifdef __cplusplus
}}
#endif

#endif
"""

SOURCE = """\
/* {prefix}.c: see {prefix}.h. */
#include <math.h>

#include "{prefix}.h"

#define LARGEST {largest}

/* 1 if all numbers are finite, and small enough for products of them to be finite too. */
static int {prefix}_finite(const {real} *x, int count)
{{
    int k, good = 1;
    for (k = 0; k < count; ++k) {{
        good &= x[k] <= LARGEST && x[k] >= -LARGEST;
    }}
    return good;
}}

static void {prefix}_clear({real} *x, int count)
{{
    int k;
    for (k = 0; k < count; ++k) {{
        x[k] = ({real})NAN;
    }}
}}

"""

CLOSE = """\
static const int {prefix}_cluster_of_row[{rows}] = {{{cluster_of_row}}};
static const int {prefix}_cluster_of_dof[{nv}] = {{{cluster_of_dof}}};
static const {real} {prefix}_row_weight[{rows}] = {{{row_weight}}};
static const {real} {prefix}_dof_weight[{nv}] = {{{dof_weight}}};

/* For each cluster of constraints its largest error and the sum of squares; returns the largest of all. */
static {real} {prefix}_sizes(const {real} *g, {real} *size, {real} *square)
{{
    {real} largest = {zero};
    int c, i;
    for (c = 0; c < {clusters}; ++c) {{
        size[c] = {zero};
        square[c] = {zero};
    }}
    for (i = 0; i < {rows}; ++i) {{
        const {real} x = {fabs}({prefix}_row_weight[i] * g[i]);
        c = {prefix}_cluster_of_row[i];
        size[c] = x > size[c] ? x : size[c];
        square[c] += x * x;
        largest = x > largest ? x : largest;
    }}
    return largest;
}}

/* Limits the step of each cluster, and turns it to the direction in which the errors fall. */
static void {prefix}_limit({real} *step)
{{
    {real} largest[{clusters}];
    int c, j;
    for (c = 0; c < {clusters}; ++c) {{
        largest[c] = {zero};
    }}
    for (j = 0; j < {nv}; ++j) {{
        const {real} x = {fabs}(step[j]) / {prefix}_dof_weight[j];
        c = {prefix}_cluster_of_dof[j];
        largest[c] = x > largest[c] ? x : largest[c];
    }}
    for (j = 0; j < {nv}; ++j) {{
        c = {prefix}_cluster_of_dof[j];
        step[j] *= largest[c] > {longest} ? -{longest} / largest[c] : -{one};
    }}
}}

/* Moves q by those parts of the step that reduce the errors of their clusters; returns 0 if there are none. */
static int {prefix}_take_step(const {real} *step, {real} *part, {real} *q, {real} *g)
{{
    {real} size[{clusters}], square[{clusters}], trial_size[{clusters}], trial_square[{clusters}];
    {real} move[{nv}], trial[{nq}], trial_g[{rows}];
    int c, j, k;
    (void){prefix}_sizes(g, size, square);
    for (k = 0; k < {halvings}; ++k) {{
        int known, again = 0, moved = 0;
        for (j = 0; j < {nv}; ++j) {{
            move[j] = part[{prefix}_cluster_of_dof[j]] * step[j];
        }}
        for (j = 0; j < {rows}; ++j) {{
            trial_g[j] = {zero};
        }}
        known = {prefix}_displace(q, move, trial) == {PREFIX}_OK
                && {prefix}_closure_error(trial, trial_g) == {PREFIX}_OK;
        (void){prefix}_sizes(trial_g, trial_size, trial_square);
        for (c = 0; c < {clusters}; ++c) {{
            if (part[c] > {zero} && !(known && trial_square[c] < square[c])) {{
                const {real} less = size[c] <= {tolerance} ? {zero} : {half} * part[c];
                part[c] = less > {smallest} ? less : {zero};
                again = 1;
            }}
            moved = moved || part[c] > {zero};
        }}
        if (!moved) {{
            return 0;
        }}
        if (!again) {{
            for (j = 0; j < {nq}; ++j) {{
                q[j] = trial[j];
            }}
            for (j = 0; j < {rows}; ++j) {{
                g[j] = trial_g[j];
            }}
            return 1;
        }}
    }}
    return 0;
}}

int {prefix}_close(const {real} guess[{nq}], {real} q[{nq}])
{{
    {real} g[{rows}], step[{nv}], part[{clusters}], size[{clusters}], square[{clusters}], largest = {one};
    int c, j, k, code;
    for (j = 0; j < {nv}; ++j) {{
        step[j] = {zero};
    }}
    for (c = 0; c < {clusters}; ++c) {{
        part[c] = {one};
    }}
    code = {prefix}_displace(guess, step, q);
    code = code == {PREFIX}_OK ? {prefix}_closure_error(q, g) : code;
    for (k = 0; code == {PREFIX}_OK && k < {iterations}; ++k) {{
        largest = {prefix}_sizes(g, size, square);
        if (largest <= {rounding}) {{
            break;
        }}
        for (c = 0; c < {clusters}; ++c) {{
            part[c] = size[c] > {rounding} && part[c] > {zero} ? {one} : {zero};
        }}
        code = {prefix}_closing_step(q, step);
        if (code == {PREFIX}_OK) {{
            {prefix}_limit(step);
            if (!{prefix}_take_step(step, part, q, g)) {{
                break;
            }}
        }}
    }}
    if (code == {PREFIX}_OK && !({prefix}_sizes(g, size, square) <= {tolerance})) {{
        code = {PREFIX}_NOT_CLOSED;
    }}
    if (code != {PREFIX}_OK) {{
        {prefix}_clear(q, {nq});
    }}
    return code;
}}
"""

CLOSE_TREE = """\
int {prefix}_close(const {real} guess[{nq}], {real} q[{nq}])
{{
    {real} step[{nv}];
    int j;
    for (j = 0; j < {nv}; ++j) {{
        step[j] = {zero};
    }}
    return {prefix}_displace(guess, step, q);
}}
"""

PROJECT = """\
static const {real} {prefix}_row_size[{rows}] = {{{row_size}}};

/* Moves (q, v) to the nearest state that satisfies the constraints, in the metric of the kinetic energy. */
static int {prefix}_project({real} *q, {real} *v)
{{
    {real} M[{nv} * {nv}], g[{rows}], change[{nv}], moved[{nq}], before = LARGEST;
    int i, j, k, code = {prefix}_inertia(q, M), closed = 0;
    for (k = 0; code == {PREFIX}_OK && !closed && k < {iterations}; ++k) {{
        {real} size = {zero};
        code = {prefix}_position_change(q, M, g, change);
        if (code != {PREFIX}_OK) {{
            break;
        }}
        for (i = 0; i < {rows}; ++i) {{
            const {real} x = {fabs}(g[i]) / {prefix}_row_size[i];
            size = x > size ? x : size;
        }}
        closed = size <= {rounding} || (size <= {tolerance} && size > {half} * before);
        if (closed) {{
            break;
        }}
        before = size;
        for (j = 0; j < {nv}; ++j) {{
            change[j] = -change[j];
        }}
        code = {prefix}_integrate(q, change, moved);
        for (j = 0; j < {nq}; ++j) {{
            q[j] = moved[j];
        }}
    }}
    if (code == {PREFIX}_OK && !closed && !(before <= {tolerance})) {{
        code = {PREFIX}_NOT_CLOSED;
    }}
    if (code == {PREFIX}_OK) {{
        code = {prefix}_velocity_change(q, v, M, change);
    }}
    for (j = 0; code == {PREFIX}_OK && j < {nv}; ++j) {{
        v[j] -= change[j];
    }}
    return code;
}}

"""

STEP = """\
int {prefix}_step(const {real} q[{nq}], const {real} v[{nv}], const {real} tau[{nf}], {real} dt,
{indent}{real} q_new[{nq}], {real} v_new[{nv}])
{{
    static const {real} part[4] = {{{zero}, {half}, {half}, {one}}}, weight[4] = {{{one}, {two}, {two}, {one}}};
    {real} q_rate[{nq}], a[{nv}], q_stage[{nq}], v_stage[{nv}], q_sum[{nq}], v_sum[{nv}];
    int i, j, code = {PREFIX}_OK;
    for (j = 0; j < {nq}; ++j) {{
        q_rate[j] = {zero};
        q_sum[j] = {zero};
    }}
    for (j = 0; j < {nv}; ++j) {{
        a[j] = {zero};
        v_sum[j] = {zero};
        v_stage[j] = {zero};
    }}
    for (i = 0; code == {PREFIX}_OK && i < 4; ++i) {{
        for (j = 0; j < {nq}; ++j) {{
            q_new[j] = q[j] + part[i] * dt * q_rate[j];
        }}
        for (j = 0; j < {nv}; ++j) {{
            v_stage[j] = v[j] + part[i] * dt * a[j];
        }}
        code = {prefix}_coordinate_rates(q_new, v_stage, q_rate);
        code = code == {PREFIX}_OK ? {prefix}_unit_quaternions(q_new, q_stage) : code;
        code = code == {PREFIX}_OK ? {prefix}_stage_accelerations(q_stage, v_stage, tau, a) : code;
        for (j = 0; j < {nq}; ++j) {{
            q_sum[j] += weight[i] * q_rate[j];
        }}
        for (j = 0; j < {nv}; ++j) {{
            v_sum[j] += weight[i] * a[j];
        }}
    }}
    for (j = 0; j < {nq}; ++j) {{
        q_stage[j] = q[j] + dt / {six} * q_sum[j];
    }}
    for (j = 0; j < {nv}; ++j) {{
        v_new[j] = v[j] + dt / {six} * v_sum[j];
    }}
    code = code == {PREFIX}_OK ? {prefix}_unit_quaternions(q_stage, q_new) : code;{project}
    if (code == {PREFIX}_OK && !({prefix}_finite(q_new, {nq}) && {prefix}_finite(v_new, {nv}))) {{
        code = {PREFIX}_NOT_FINITE;
    }}
    if (code != {PREFIX}_OK) {{
        {prefix}_clear(q_new, {nq});
        {prefix}_clear(v_new, {nv});
    }}
    return code;
}}
"""

MAIN = """\
/* An example: the robot at its reference configuration, at rest, moved by its weight for a tenth of a second. */
#include <stdio.h>

#include "{prefix}.h"

int main(void)
{{
    static const {real} home[{nq}] = {{{home}}};
    {real} q[{nq}], v[{nv}], tau[{nv}];
{locals}    int j, code = {PREFIX}_OK;
    for (j = 0; j < {nq}; ++j) {{
        q[j] = home[j];
    }}
    for (j = 0; j < {nv}; ++j) {{
        v[j] = {zero};
        tau[j] = {zero};
    }}
{body}    printf("code %d\\n", code);
    for (j = 0; j < {nq}; ++j) {{
        printf("q[%d] = %.9g\\n", j, (double)q[j]);
    }}
    return code;
}}
"""
MAIN_CLOSE = """\
    code = {prefix}_close(home, q);
"""
MAIN_STEP = """\
    for (k = 0; code == {PREFIX}_OK && k < 100; ++k) {{
        code = {prefix}_step(q, v, tau, {dt}, q_new, v_new);
        for (j = 0; j < {nq}; ++j) {{
            q[j] = q_new[j];
        }}
        for (j = 0; j < {nv}; ++j) {{
            v[j] = v_new[j];
        }}
    }}
"""

CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project({prefix} C)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
add_library({prefix} STATIC {prefix}.c)
target_include_directories({prefix} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(UNIX)
    target_link_libraries({prefix} m)
endif()
add_executable({prefix}_example main.c)
target_link_libraries({prefix}_example {prefix})
"""
