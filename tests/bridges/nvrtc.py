"""NVIDIA's run-time compiler from its wheel (nvidia-cuda-nvrtc-cu12): machine code without a driver or a GPU."""
import ctypes
import importlib.util
from pathlib import Path


def library():
    """The compiler, or None if its wheel is not installed."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    for folder in (spec.submodule_search_locations if spec else ()):
        for path in sorted(Path(folder).glob("lib/libnvrtc.so*")):
            for other in Path(folder).glob("lib/libnvrtc-builtins.so*"):
                ctypes.CDLL(str(other), mode=ctypes.RTLD_GLOBAL)
            return ctypes.CDLL(str(path))
    return None


def compiled(nvrtc, source, architecture="sm_90"):
    """Machine code (an ELF file), and for each kernel its registers, and bytes of its stack in memory, by name."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"liedyn.cu", 0, None, None) == 0
    options = [f"--gpu-architecture={architecture}".encode(), b"-std=c++17", b"-DLIEDYN_BLOCK=128"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, code)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw, resources(code.raw)


def resources(code):
    """Registers and bytes of the stack of each kernel.

    Section .nv.info has records of a format, an attribute, and for the format 4 a size and contents: attributes 0x11
    (frame size) and 0x2f (registers) hold the number of a symbol and the value.
    """
    def number(at, size):
        return int.from_bytes(code[at:at + size], "little")

    table, each, count, strings = number(0x28, 8), number(0x3A, 2), number(0x3C, 2), number(0x3E, 2)
    sections = [{"name": number(at, 4), "offset": number(at + 24, 8), "size": number(at + 32, 8),
                 "link": number(at + 40, 4)} for at in range(table, table + each * count, each)]

    def text(section, at):
        begin = sections[section]["offset"] + at
        return code[begin:code.index(b"\0", begin)].decode()

    by_name = {text(strings, section["name"]): section for section in sections}
    symbols, found = by_name[".symtab"], {0x11: {}, 0x2F: {}}
    at, info = by_name[".nv.info"]["offset"], by_name[".nv.info"]
    while at < info["offset"] + info["size"]:
        form, attribute, size = code[at], code[at + 1], number(at + 2, 2)
        if form == 4 and attribute in found:
            name = number(symbols["offset"] + 24 * number(at + 4, 4), 4)
            found[attribute][text(symbols["link"], name)] = number(at + 8, 4)
        at += 4 + (size if form == 4 else 0)
    return {name: (count, found[0x11].get(name, 0)) for name, count in found[0x2F].items()}
