"""Modified Bessel functions of orders 0 and 1, plain and without their exponential growth."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, call, maximum, select
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ops.elementwise.define import Vjp, floats, row
from tilewright.ops.elementwise.special.series import INF, NAN, double, polynomial, real
from tilewright.ops.traced_value import Value

# exp(-x) I0 and exp(-x) I1 / x, of x / 4 - 1 up to 8
_I0_NEAR = (
    -1.1852342482684723e-09,
    4.470516727511741e-09,
    -7.723094556846333e-09,
    2.6265363151970112e-08,
    -1.1384114641747256e-07,
    3.675842926555429e-07,
    -1.0883393970072518e-06,
    3.2293390826404927e-06,
    -9.251680584432654e-06,
    2.520232727107692e-05,
    -6.550861389620851e-05,
    0.00016240542162878106,
    -0.00038290209550065975,
    0.0008563152748272306,
    -0.001811886793937724,
    0.003617126448897043,
    -0.0067923998730731695,
    0.011960077907026221,
    -0.01968265469059234,
    0.030177912022978357,
    -0.04298594945479612,
    0.05677703201991695,
    -0.06954119561719381,
    0.07927522590716347,
    -0.08496338091616305,
    0.08734341617552313,
    -0.08904344136075962,
    0.09451562853995103,
    -0.11300432688620549,
    0.2070019212239867,
)
_I1_NEAR = (
    -9.506861180736366e-11,
    3.7284532079392345e-10,
    -7.277033556073836e-10,
    2.603206542331157e-09,
    -1.1224475126135595e-08,
    3.802984785138283e-08,
    -1.1993980285486188e-07,
    3.759367306404118e-07,
    -1.1381566323785447e-06,
    3.293899139003749e-06,
    -9.131775730568571e-06,
    2.4233753149624307e-05,
    -6.142655719704761e-05,
    0.0001484212433475852,
    -0.00034117472445271377,
    0.0007445123445061157,
    -0.0015388749696724586,
    0.0030057624197775295,
    -0.00553456775924123,
    0.009583962150731578,
    -0.015571309256763564,
    0.023686016957729535,
    -0.03367135551992323,
    0.04467457262125467,
    -0.055280039227051464,
    0.06376740371340721,
    -0.06848260620582547,
    0.0680575999095116,
    -0.06112433802966629,
    0.044687709875608835,
)

# exp(-x) sqrt(x) I, of 16 / x - 1
_I0_FAR = (
    -6.067631570603011e-11,
    -2.026060428741361e-11,
    4.577087631643626e-10,
    1.5279202694981558e-10,
    -1.6189806836246825e-09,
    -5.715843864202707e-10,
    3.6379546359011156e-09,
    1.5200816953924227e-09,
    -5.953569438264892e-09,
    -3.5059665308793316e-09,
    7.430464650325426e-09,
    7.552583062123384e-09,
    -5.404771567579958e-09,
    -1.340891754008974e-08,
    -6.747657956107524e-09,
    7.554691881248808e-09,
    2.1548377974791598e-08,
    3.932584334552952e-08,
    8.872219737904054e-08,
    2.9735985885673923e-07,
    1.4838475658279249e-06,
    1.1143033790932038e-05,
    0.0001362160743919305,
    0.0033605519836678614,
    0.4021765094450081,
)
_I1_FAR = (
    6.305965197150062e-11,
    1.851511882885294e-11,
    -4.758818838703856e-10,
    -1.4011625179770617e-10,
    1.6848984479705154e-09,
    5.295625441161259e-10,
    -3.794670896208341e-09,
    -1.4387250533041011e-09,
    6.242741219786446e-09,
    3.4262341490077958e-09,
    -7.888351507862078e-09,
    -7.64239413436356e-09,
    5.974437608040264e-09,
    1.4034238782067183e-08,
    6.734464815301592e-09,
    -8.427766093735185e-09,
    -2.337392820814264e-08,
    -4.312917729178349e-08,
    -1.0001288294864884e-07,
    -3.483855761044295e-07,
    -1.8349101326980946e-06,
    -1.5038547200567216e-05,
    -0.00021923576383388928,
    -0.009749577193235737,
    0.38939845902587233,
)

# K0 and K1 * x less their logarithms, of x * x / 2 - 1 up to 2
_K0_NEAR = (
    3.518631515854722e-14,
    5.452564662772586e-12,
    6.623013272794453e-10,
    6.093361894172114e-08,
    4.054506619949891e-06,
    0.0001828055582791554,
    0.005053392643196092,
    0.07177701034240509,
    0.3404973210133806,
    -0.30362077291575545,
)
_K1_NEAR = (
    -6.214271617329577e-13,
    -8.533634168575142e-11,
    -9.032127501740678e-09,
    -7.081133691517408e-07,
    -3.891869064371633e-05,
    -0.001383168846618116,
    -0.02785423521977184,
    -0.2438385288677433,
    -0.3322409552403131,
    0.8850882877295894,
)

# exp(x) sqrt(x) K, of 4 / x - 1
_K0_FAR = (
    -6.910453875670571e-11,
    1.0926983537268735e-10,
    2.213758097591008e-10,
    -3.119936129682105e-10,
    -5.541051446065683e-10,
    8.133913205464114e-10,
    1.7887095838476482e-10,
    4.757544705776374e-11,
    -1.9309444875845705e-09,
    3.808399859919043e-09,
    -7.286380907337665e-09,
    1.7047535884249698e-08,
    -4.133923052104385e-08,
    1.02954317593912e-07,
    -2.6890662472901614e-07,
    7.427801232190096e-07,
    -2.191177788015528e-06,
    7.002245645755651e-06,
    -2.4735204561466906e-05,
    9.95605474202942e-05,
    -0.0004797690567662314,
    0.0030328918102753206,
    -0.03107146182488952,
    1.2185953385133905,
)
_K1_FAR = (
    7.52479548635394e-11,
    -1.1931668393112158e-10,
    -2.399376595899464e-10,
    3.3867804167808003e-10,
    6.042482293782838e-10,
    -8.908596710923906e-10,
    -1.7982138496175016e-10,
    -8.336227195991456e-11,
    2.1757782025837176e-09,
    -4.331939985658629e-09,
    8.40938756536177e-09,
    -1.9817577141591116e-08,
    4.8461952200091865e-08,
    -1.2203186351938403e-07,
    3.2298119177151824e-07,
    -9.067087633371393e-07,
    2.730041433569803e-06,
    -8.961207387750025e-06,
    3.284386555825453e-05,
    -0.00013959021956272223,
    0.0007357241549081501,
    -0.005566729880074588,
    0.10334973775386523,
    1.363151890371342,
)

_I = ((_I0_NEAR, _I0_FAR), (_I1_NEAR, _I1_FAR))
_K = ((_K0_NEAR, _K0_FAR), (_K1_NEAR, _K1_FAR))


@node
class ModifiedBesselAttrs(Attrs):
    """The order, 0 or 1; `scaled`: times exp(-abs(x)), or exp(x) of the second kind."""

    order: int = 0
    scaled: bool = False


def _scaled_first(order: int, size: Expr) -> Expr:
    """exp(-x) I of a number that is not negative."""
    near, far = _I[order]
    low = polynomial(near, size * real(0.25) - real(1))
    low = low * size if order else low
    inverse = real(1) / maximum(size, real(8))
    high = polynomial(far, inverse * real(16) - real(1)) * call("sqrt", inverse)
    return select(size <= real(8), low, high)


def _first(attrs: ModifiedBesselAttrs, x: Expr) -> Expr:
    size = call("abs", x)
    found = _scaled_first(attrs.order, size)
    if not attrs.scaled:
        # in two factors: the exponential alone overflows first
        half = call("exp", size * real(0.5))
        found = found * half * half
    return select(x < real(0), -found, found) if attrs.order else found


def _second(attrs: ModifiedBesselAttrs, x: Expr) -> Expr:
    """Infinite at 0, no number below."""
    near, far = _K[attrs.order]
    small = select(x < real(2), x, real(2))
    rest = polynomial(near, small * small * real(0.5) - real(1))
    log = call("log", small * real(0.5)) * _scaled_first(attrs.order, small) * call("exp", small)
    low = rest / small + log if attrs.order else rest - log
    low = low * call("exp", small) if attrs.scaled else low
    inverse = real(1) / maximum(x, real(2))
    high = polynomial(far, inverse * real(4) - real(1)) * call("sqrt", inverse)
    high = high if attrs.scaled else high * call("exp", -x)
    found = select(x <= real(2), low, high)
    return select(x >= real(0), select(x.eq(real(0)), INF, found), NAN)


def _slope(kind: str, sign: int) -> Vjp:
    """The derivatives, of plain functions and of those without their growth."""

    def rule(attrs: ModifiedBesselAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
        x = ins[0]
        other = x.apply(kind, attrs=ModifiedBesselAttrs(1 - attrs.order, attrs.scaled))
        slope = other * sign
        if attrs.order:
            slope = slope - y / x
        if attrs.scaled:
            slope = slope - y * x.apply("sign") if sign > 0 else slope + y
        return (dy * slope,)

    return rule


OPS = (
    row(
        "modified_bessel_i",
        double(_first),
        floats,
        attrs=ModifiedBesselAttrs,
        flops=120,
        vjp=_slope("modified_bessel_i", 1),
        doc="the modified Bessel function of the first kind",
    ),
    row(
        "modified_bessel_k",
        double(_second),
        floats,
        attrs=ModifiedBesselAttrs,
        flops=200,
        vjp=_slope("modified_bessel_k", -1),
        doc="the modified Bessel function of the second kind",
    ),
)
