"""What is left of the error function (erfc, erfcx), and the inverse functions."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, call, select
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.define import floats, row, unary_vjp
from tilewright.ops.elementwise.special.series import INF, NAN, double, polynomial, real

# exp(x * x) * erfc(x) * (1 + 2 x), of (x - 3.75) / (x + 3.75)
_ERFCX = (
    4.2514714447963895e-10,
    3.1114333809799254e-10,
    -5.1739902140113095e-09,
    -3.744210080962018e-09,
    3.8675334242222354e-08,
    2.3263508708859124e-08,
    -2.5866850716155884e-07,
    -5.7218230603224086e-08,
    1.751637648849062e-06,
    -9.73559896736775e-07,
    -1.1444146237700524e-05,
    2.238423915508223e-05,
    5.164909889268241e-05,
    -0.0002901540805408417,
    0.0002937136655913448,
    0.0017556258528952954,
    -0.009746579558029276,
    0.028362277418956406,
    -0.05869339858963677,
    0.09230432116037748,
    -0.10880393014174886,
    0.0822767384901452,
    0.0035854154854644293,
    -0.14024059858554697,
    1.2375126308378275,
)

# erfinv(y) / y by parts of w = -log(1 - y * y): of w up to 6.25, then of the root of w
_ERFINV_CENTRE = (
    -2.5466157998892667e-10,
    7.680990475576525e-10,
    1.4461050507676023e-09,
    -8.557984074479201e-09,
    5.039596477958063e-09,
    3.9142671001331085e-08,
    -9.905042307855316e-08,
    -1.0167881522843899e-08,
    5.397895417173957e-07,
    -1.059336931327948e-06,
    -6.839448584111029e-07,
    7.1300663740767115e-06,
    -1.12572237422896e-05,
    -1.5027713926607673e-05,
    9.336736525855553e-05,
    -0.00011688883906368398,
    -0.00026439366376450275,
    0.001232485568550093,
    -0.001271692268923054,
    -0.004137314377403391,
    0.017808361818321756,
    -0.022604447453450232,
    -0.05892256710377839,
    0.7504943200799635,
    1.6536545626831027,
)
_ERFINV_4 = (
    2.4097707183427266e-11,
    -6.466960514925277e-11,
    -1.1662393838626048e-10,
    9.889115389827977e-10,
    -2.4632549100503405e-09,
    -3.6862448212666726e-10,
    2.640222955342202e-08,
    -9.468994570246937e-08,
    9.28911222561948e-08,
    5.264624728714587e-07,
    -2.664792853936729e-06,
    5.12731666449741e-06,
    2.4058645410848233e-06,
    -4.739182728807125e-05,
    0.00016966502201594177,
    -0.00040063569835709886,
    0.0007883078513035505,
    -0.0015825410894071102,
    0.003021139436374801,
    0.753944225770624,
    3.0838856104922208,
)
_ERFINV_8 = (
    -1.28656348491379e-09,
    3.750880589580116e-09,
    6.819615873701635e-10,
    -1.2529777254190381e-08,
    1.342555145133933e-08,
    -6.183866265110703e-09,
    1.7154273635274046e-08,
    -3.5964991166813595e-08,
    3.4950978034000815e-08,
    -2.667330586201613e-08,
    3.281778940670727e-08,
    -5.663866346144011e-08,
    1.284506788753038e-07,
    -3.664664456230228e-07,
    1.1057607798577655e-06,
    -3.2984236844174246e-06,
    9.570768471518179e-06,
    -2.6736679627160555e-05,
    7.075802612232158e-05,
    -0.00017140419210433895,
    0.0003452569225607379,
    -0.000343399821542814,
    -0.0018913598316051363,
    2.0192102441988182,
    5.859913143946245,
)
_ERFINV_16 = (
    -5.481030158472819e-11,
    1.5948385412315364e-10,
    -1.99948420236145e-10,
    5.990008788967168e-10,
    -2.2931310349778507e-09,
    6.51638767670384e-09,
    -1.768699438208149e-08,
    4.887350065555661e-08,
    -1.32138558399848e-07,
    3.4400626111922874e-07,
    -8.495451897167374e-07,
    1.9154941324240933e-06,
    -3.5413203826706497e-06,
    2.8853281959263885e-06,
    1.8880077519992303e-05,
    -0.00015688549891769316,
    0.0008493351504401911,
    -0.00407018968425622,
    4.0190880150746615,
    11.901287167432752,
)
_ERFINV_28 = (
    1.189403046253505e-11,
    -3.664709112512348e-11,
    6.028849073829306e-11,
    -1.5688511883485121e-10,
    3.911478524529572e-10,
    -2.911982682585606e-10,
    -3.589428880888372e-09,
    3.166084618868472e-08,
    -1.9173365593170483e-07,
    1.0161803311664293e-06,
    -5.0412187108703065e-06,
    2.4120782354163698e-05,
    -0.00011328296899216651,
    0.0005294159215035489,
    -0.002499876136517936,
    6.012246722797223,
    21.93243668233165,
)

# From where to where the root of w goes.
_PARTS = ((2.5, 4.0, _ERFINV_4), (4.0, 8.0, _ERFINV_8), (8.0, 16.0, _ERFINV_16))
_LAST = (16.0, 28.0, _ERFINV_28)


def _scaled_positive(x: Expr) -> Expr:
    """exp(x * x) * erfc(x) from 0 on."""
    t = real(1) - real(7.5) / (x + real(3.75))
    return polynomial(_ERFCX, t) / (real(1) + x * real(2))


def _gauss(x: Expr) -> Expr:
    """exp(-x * x), with what the square is rounded by."""
    square = x * x
    rest = call("fma", x, x, -square)
    whole = call("exp", -square)
    return select(whole.eq(real(0)), whole, whole - whole * rest)


def _erfc(_: Attrs, x: Expr) -> Expr:
    """Near 0 one less erf."""
    size = call("abs", x)
    tail = _gauss(size) * _scaled_positive(size)
    far = select(x < real(0), real(2) - tail, tail)
    return select(
        size < real(0.5),
        real(1) - call("erf", x),
        select(call("isinf", x), real(1) - call("sign", x), far),
    )


def _erfcx(_: Attrs, x: Expr) -> Expr:
    """Below 0 it grows with exp(x * x)."""
    scaled = _scaled_positive(call("abs", x))
    square = x * x
    growth = call("exp", square)
    rest = call("fma", x, x, -square)
    exact = select(call("isinf", growth), growth, growth + growth * rest)
    return select(x < real(0), exact * real(2) - scaled, scaled)


def _ratio(w: Expr) -> Expr:
    """erfinv(y) / y, of w = -log(1 - y * y)."""
    root = call("sqrt", w)
    low, high, last = _LAST
    found = polynomial(last, (root - real((low + high) / 2)) * real(2 / (high - low)))
    for low, high, part in reversed(_PARTS):
        t = (root - real((low + high) / 2)) * real(2 / (high - low))
        found = select(root < real(high), polynomial(part, t), found)
    centre = polynomial(_ERFINV_CENTRE, w * real(1 / 3.125) - real(1))
    return select(w < real(6.25), centre, found)


def _erfinv(_: Attrs, y: Expr) -> Expr:
    size = call("abs", y)
    found = _ratio(-call("log1p", -(y * y))) * y
    tail = _ratio(-call("log", (real(1) - size) * (real(1) + size))) * y
    found = select(size < real(0.5), found, tail)
    found = select(size.eq(real(1)), INF * y, found)
    return select(size <= real(1), found, NAN)


def _ndtri(_: Attrs, p: Expr) -> Expr:
    """`sqrt(2) * erfinv(2 p - 1)`, where 1 - (2 p - 1) ** 2 is 4 p (1 - p)."""
    y = p * real(2) - real(1)
    found = _ratio(-call("log", p * (real(1) - p) * real(4))) * y * real(math.sqrt(2))
    found = select(p.eq(real(0)), -INF, select(p.eq(real(1)), INF, found))
    return select((real(0) <= p) & (p <= real(1)), found, NAN)


_SLOPE = 2 / math.sqrt(math.pi)

OPS = (
    row(
        "erfc",
        double(_erfc),
        floats,
        flops=60,
        vjp=unary_vjp(lambda x, y, dy: dy * (-(x * x)).apply("exp") * -_SLOPE),
        doc="one less the error function",
    ),
    row(
        "erfcx",
        double(_erfcx),
        floats,
        flops=60,
        vjp=unary_vjp(lambda x, y, dy: dy * (x * y * 2 - _SLOPE)),
        doc="exp(x * x) * erfc(x)",
    ),
    row(
        "erfinv",
        double(_erfinv),
        floats,
        flops=120,
        vjp=unary_vjp(lambda x, y, dy: dy * (y * y).apply("exp") * (1 / _SLOPE)),
        doc="the inverse of the error function",
    ),
    row(
        "ndtri",
        double(_ndtri),
        floats,
        flops=120,
        vjp=unary_vjp(lambda x, y, dy: dy * (y * y * 0.5).apply("exp") * math.sqrt(2 * math.pi)),
        doc="the number below which a normal variable lies with a probability",
    ),
)
