"""What the derivative of a feedback (`liedyn.feedback`) adds to the matrices of the implicit methods."""
from liedyn.functions import call
from liedyn.jit import kernel_in_place


@kernel_in_place
def add_feedback(o, x, t, q, v, sign, by_q, by_v):
    """Add sign dtau/dq and sign dtau/dv (n, n), of the inputs that are a feedback with a derivative."""
    if o.feedback_address == 0:
        return
    call(o.feedback_address, t, q, v, v, v, x.feedback, 0)
    for i in range(by_q.shape[0]):
        for k in range(x.actuators.shape[1]):
            s = sign * x.actuators[i, k]
            if s != 0.0:
                for j in range(by_q.shape[1]):
                    by_q[i, j] += s * x.feedback[0, k, j]
                    by_v[i, j] += s * x.feedback[1, k, j]


@kernel_in_place
def close_loop(o, x, t, q, v, local):
    """Add the feedback to local.A, the local state space by (y, w): A + B (F_q N dy + F_v X (dy, dw))."""
    if o.feedback_address == 0:
        return
    call(o.feedback_address, t, q, v, v, v, x.feedback, 0)
    p_y = local.A.shape[0] - local.w.size
    for k in range(x.actuators.shape[1]):
        for c in range(local.A.shape[0]):
            s = 0.0
            for j in range(v.size):
                s += x.feedback[1, k, j] * local.X[j, c]
                if c < p_y:
                    s += x.feedback[0, k, j] * local.N[j, c]
            for i in range(local.A.shape[0]):
                local.A[i, c] += local.B[i, k] * s
