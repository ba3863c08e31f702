"""modelDescription.xml of an FMU, in versions 2.0 and 3.0 of the standard, and the build description of 3.0.

Value references, in the order of fmu_core.h: time, states, their derivatives, inputs, outputs.
"""
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

BASE_UNITS = {
    "s": dict(s=1), "rad": dict(rad=1), "rad/s": dict(rad=1, s=-1), "rad/s2": dict(rad=1, s=-2), "m": dict(m=1),
    "m/s": dict(m=1, s=-1), "m/s2": dict(m=1, s=-2), "N": dict(kg=1, m=1, s=-2), "N.m": dict(kg=1, m=2, s=-2),
    "1": {}, "1/s": dict(s=-1),
}
"""Exponents of base units of each unit."""


class Variable(NamedTuple):
    """One variable of the model.

    Attributes
    ----------
    name : str
        As the robot has it.
    reference : int
    causality : str
    unit : str or None
    start : float or None
        None for calculated variables.
    of : int or None
        The value reference of the state of which this is the derivative.
    """

    name: str
    reference: int
    causality: str
    unit: str | None = None
    start: float | None = None
    of: int | None = None


class Description(NamedTuple):
    """What the XML files say.

    Attributes
    ----------
    name : str
        Of the robot.
    identifier : str
    token : str
    step : float
        Internal step of co-simulation [s].
    variables : list of Variable
    depends : dict
        For the value references of derivatives and outputs, on which states and inputs they depend.
    sources : list of str
    """

    name: str
    identifier: str
    token: str
    step: float
    variables: list
    depends: dict
    sources: list


def xml_text(name):
    """A name in one line of XML: characters that XML does not have, and line breaks, become %XX."""
    def is_fine(c):
        return 0x20 <= c < 0x7f or 0xa0 <= c < 0xd800 or 0xe000 <= c < 0xfffe or c > 0xffff

    return "".join(c if is_fine(ord(c)) else f"%{ord(c):02X}" for c in name)


def unique(names):
    """Names that are all different, and not empty, as XML has them."""
    made = []
    for name in map(xml_text, names):
        new, k = name.strip() and name or "%", 1
        while new in made:
            k += 1
            new = f"{name} ({k})"
        made.append(new)
    return made


def _tag(name, /, *inside, **attributes):
    text = "".join(f" {key}={quoteattr(str(value))}" for key, value in attributes.items() if value is not None)
    if not inside:
        return f"<{name}{text}/>"
    lines = "\n".join(inside).replace("\n", "\n  ")
    return f"<{name}{text}>\n  {lines}\n</{name}>"


def _document(root):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{root}\n'


def _units(tag, variables, with_base):
    used = dict.fromkeys(each.unit for each in variables if each.unit)
    return _tag(tag, *(_tag("Unit", _tag("BaseUnit", **BASE_UNITS[unit]), name=unit) for unit in used))


def _kinds(depends):
    return " ".join(["dependent"] * len(depends)) or ""


def description_2(of):
    """modelDescription.xml of FMI 2.0."""
    names = unique([each.name for each in of.variables])
    place = {each.reference: k for k, each in enumerate(of.variables, 1)}
    shared = dict(modelIdentifier=of.identifier, canNotUseMemoryManagementFunctions="true",
                  canGetAndSetFMUstate="true", canSerializeFMUstate="true", providesDirectionalDerivative="true")
    files = _tag("SourceFiles", *(_tag("File", name=each) for each in of.sources))
    scalars = [_tag("ScalarVariable", _tag(
        "Real", unit=each.unit, start=None if each.start is None else repr(float(each.start)),
        derivative=None if each.of is None else place[each.of]),
        name=name, valueReference=each.reference, causality=each.causality, variability="continuous",
        initial=_initial(each)) for name, each in zip(names, of.variables)]

    def unknowns(tag, chosen, known):
        if not chosen:
            return []
        return [_tag(tag, *(_tag("Unknown", index=place[each.reference], **(_dependencies(
            of, each, lambda reference: place[reference]) if known else {})) for each in chosen))]

    outputs, rates = of_causality(of, "output"), [each for each in of.variables if each.of is not None]
    initial = sorted({*(each for each in outputs if each.start is None), *rates}, key=lambda each: each.reference)
    return _document(_tag(
        "fmiModelDescription", _tag("ModelExchange", files, **shared),
        _tag("CoSimulation", files, **shared, canHandleVariableCommunicationStepSize="true"),
        _units("UnitDefinitions", of.variables, True), _log_categories(),
        _tag("DefaultExperiment", startTime=0.0, stopTime=1.0, stepSize=of.step), _tag("ModelVariables", *scalars),
        _tag("ModelStructure", *unknowns("Outputs", outputs, True), *unknowns("Derivatives", rates, True),
             *unknowns("InitialUnknowns", initial, False)),
        fmiVersion="2.0", modelName=xml_text(of.name), guid=of.token, generationTool="liedyn",
        variableNamingConvention="flat", numberOfEventIndicators=0))


def description_3(of):
    """modelDescription.xml of FMI 3.0."""
    names = unique([each.name for each in of.variables])
    shared = dict(modelIdentifier=of.identifier, canGetAndSetFMUState="true", canSerializeFMUState="true",
                  providesDirectionalDerivatives="true", providesAdjointDerivatives="true")
    variables = [_tag("Float64", name=name, valueReference=each.reference, causality=each.causality,
                      variability="continuous", initial=_initial(each), unit=each.unit,
                      start=None if each.start is None else repr(float(each.start)), derivative=each.of)
                 for name, each in zip(names, of.variables)]
    outputs, rates = of_causality(of, "output"), [each for each in of.variables if each.of is not None]
    initial = sorted({*(each for each in outputs if each.start is None), *rates}, key=lambda each: each.reference)

    def unknown(tag, each, known):
        return _tag(tag, valueReference=each.reference, **(_dependencies(of, each, lambda x: x) if known else {}))

    return _document(_tag(
        "fmiModelDescription", _tag("ModelExchange", **shared, needsCompletedIntegratorStep="true"),
        _tag("CoSimulation", **shared, canHandleVariableCommunicationStepSize="true",
             fixedInternalStepSize=repr(of.step)),
        _units("UnitDefinitions", of.variables, True), _log_categories(),
        _tag("DefaultExperiment", startTime=0.0, stopTime=1.0, stepSize=of.step), _tag("ModelVariables", *variables),
        _tag("ModelStructure", *(unknown("Output", each, True) for each in outputs),
             *(unknown("ContinuousStateDerivative", each, True) for each in rates),
             *(unknown("InitialUnknown", each, False) for each in initial)),
        fmiVersion="3.0", modelName=xml_text(of.name), instantiationToken=of.token, generationTool="liedyn",
        variableNamingConvention="flat"))


def build_description(of):
    """sources/buildDescription.xml of FMI 3.0."""
    return _document(_tag(
        "fmiBuildDescription", _tag(
            "BuildConfiguration", _tag("SourceFileSet", *(_tag("SourceFile", name=each) for each in of.sources),
                                       language="C99"),
            _tag("Library", name="m", external="true"), modelIdentifier=of.identifier), fmiVersion="3.0"))


def of_causality(of, causality):
    """The variables of one causality."""
    return [each for each in of.variables if each.causality == causality]


def _initial(each):
    if each.causality in ("input", "independent"):
        return None
    return "calculated" if each.start is None else "exact"


def _dependencies(of, each, place):
    depends = [place(reference) for reference in of.depends[each.reference]]
    return {"dependencies": " ".join(map(str, depends)), "dependenciesKind": " ".join(["dependent"] * len(depends))}


def _log_categories():
    return _tag("LogCategories", _tag("Category", name="logStatusDiscard"), _tag("Category", name="logStatusError"))
