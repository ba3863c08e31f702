"""Families of constraints: the compiled functions of the kinds in `liedyn.model.kinds`.

A family is a module in the table of `liedyn.mechanics.constraints.constraint_rows`. It defines for an active constraint
l

    residual(model, l, q, work, g)                               its rows of g
    jacobian(model, l, q, work, G)                               of G
    velocity(model, l, q, v, work, psi)                          of psi = G v - b
    bias(model, l, q, v, work, phi)                              of phi_0 = Gdot v - bdot
    derivatives(model, l, q, v, a, work, slopes)                 of slopes = dpsi/dq, dphi/dq, dphi/dv
    force_derivative(model, l, q, work, lam, D)                  D += d(G^T lambda)/dq
    vary_rows(model, l, motion, links, columns, part, b, out)
        out[:, block b] = variations of psi along N (part 2), or of phi along N and X (part 3), in lanes, for
        motion = (q, v, a), columns = (N, X) and the `VariedLinks` of `liedyn.mechanics.tree.tangent_recursion`
    push(model, l, work, lam, bodies)                            adds its wrenches to the links',
    vary_wrench(model, l, work, lam, variations)                 and their variations, or
    vary_forces(model, l, q, lam, N, b, balance)                 balance[:, block b] -= d(G^T lambda) along N

and omits those whose result is zero, as rows are zero before. Kinematics in `work` are those of
`liedyn.mechanics.tree.kinematics`, of `variations` those of `liedyn.mechanics.tree.tangent_recursion`. Cut joints have
the same functions as loops over all of them: they come in lanes, and some share work.
"""
