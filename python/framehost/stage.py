# SPDX-License-Identifier: Apache-2.0
"""`python3 -m framehost.stage FILE`: runs the filter of a file. framehost starts it, and nobody else."""
from __future__ import annotations

import ctypes
import dataclasses
import gc
import importlib.util
import inspect
import json
import os
import sys
import threading
import time
import traceback
import types
import typing
from typing import Any, List, Optional

import numpy

import framehost
from framehost import DROP, Filter, Format, Frame, Refusal
from framehost import _link as link


def load(path: str) -> typing.Type[Filter]:
    """The filter class of a file."""
    folder, name = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(os.path.splitext(name)[0], path)
    if spec is None or spec.loader is None:
        raise Refusal(f"'{path}' is not a Python file", "Give it the ending .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [each for each in vars(module).values()
             if isinstance(each, type) and issubclass(each, Filter) and each is not Filter and each.__module__ == module.__name__]
    if not found:
        raise Refusal("has no class that derives from framehost.Filter", "Write `class Name(framehost.Filter):`.")
    # Of a family of classes, the one that nobody derives from.
    leaves = [each for each in found if not any(other is not each and issubclass(other, each) for other in found)]
    if len(leaves) > 1:
        raise Refusal(f"has {len(leaves)} filters: " + ", ".join(each.__name__ for each in leaves), "Write each into a file of its own.")
    return leaves[0]


# MARK: What it says of itself


def _type_of(hint: Any, default: Any) -> str:
    arguments = [each for each in typing.get_args(hint) if each is not type(None)]
    if type(None) in typing.get_args(hint) and len(arguments) == 1:
        hint = arguments[0]
    words = {bool: "boolean", int: "integer", float: "number", str: "string"}
    if hint not in words:
        raise Refusal(f"an option has the type {hint}", "Use bool, int, float or str, or Optional of these.")
    return words[hint]


def _options(filter: typing.Type[Filter]) -> List[dict]:
    if filter.Options is None:
        return []
    if not dataclasses.is_dataclass(filter.Options):
        raise Refusal("Options is not a dataclass", "Write @dataclass before `class Options`.")
    hints = typing.get_type_hints(filter.Options)
    options = []
    for field in dataclasses.fields(filter.Options):
        about = field.metadata.get("framehost")
        if about is None:
            raise Refusal(f"the option '{field.name}' says nothing of itself", f"Write {field.name} = framehost.option(default, \"help\").")
        words = {"name": field.name, "help": about["help"], "unit": about["unit"], "live": about["live"], "default": field.default}
        if about["choices"]:
            words.update(type="choice", choices=list(about["choices"]))
        else:
            words["type"] = _type_of(hints[field.name], field.default)
        for key in "minimum", "maximum":
            if about[key] is not None:
                words[key] = about[key]
        options.append(words)
    return options


def commands(filter: typing.Type[Filter]) -> dict:
    """The methods that are commands, by the command's name."""
    methods = {}
    for name in dir(filter):
        command = getattr(getattr(filter, name, None), "__framehost_command__", None)
        if command is not None:
            methods[command.name] = (command, name)
    return methods


def describe(filter: typing.Type[Filter]) -> dict:
    def members(list: Any) -> List[dict]:
        return [dataclasses.asdict(each) for each in list]

    summary = (filter.__doc__ or "").strip().split("\n")[0]
    if not summary or filter.__doc__ == Filter.__doc__:
        raise Refusal(f"the class {filter.__name__} has no doc string", "Say in one sentence what it does.")
    options = _options(filter)
    if filter.process is Filter.process:
        raise Refusal(f"the class {filter.__name__} has no method process(self, frame)", "Write one: it is called for each frame.")
    return {
        "summary": summary, "formats": list(filter.formats), "modifies": filter.modifies,
        "longestCallMs": max(1, round(filter.longest_call * 1000)), "options": options,
        "events": [{"name": each.name, "summary": each.summary, "members": members(each.members)} for each in filter.events],
        "commands": [{"name": each.name, "summary": each.summary, "arguments": members(each.arguments)}
                     for each, _ in commands(filter).values()],
    }


# MARK: Frames


def views(memory: link.Memory, buffer: int) -> List[numpy.ndarray]:
    """An array for each plane of a buffer, made once: rows, columns, and the parts of a pixel where it has several."""
    head = memory.head
    name = head.pixel_format.decode()
    arrays = []
    for index in range(head.planes):
        plane = head.plane[index]
        kind = numpy.dtype("<u2") if name in ("i010", "p010") else numpy.dtype("u1")
        parts = {"bgra": 4, "rgb24": 3, "yuyv": 2}.get(name, 2 if name in ("nv12", "p010") and index == 1 else 1)
        columns = plane.row_bytes // kind.itemsize // parts
        shape = (plane.rows, columns) + ((parts,) if parts > 1 else ())
        strides = (plane.stride, kind.itemsize * parts) + ((kind.itemsize,) if parts > 1 else ())
        arrays.append(numpy.ndarray(shape, kind, memory.buffers, buffer * head.buffer_bytes + plane.offset, strides))
    return arrays


def own_place(error: BaseException, file: str) -> str:
    """File and line of an exception: the last line that is of the filter's file, else the last one."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.basename(error.filename)}:{error.lineno}"
    own = [each for each in frames if os.path.abspath(each.filename) == os.path.abspath(file)] or list(frames)
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else os.path.basename(file)


def fault(error: BaseException, file: str) -> dict:
    """An exception in the words of the protocol."""
    if isinstance(error, Refusal):
        return {"faults": [{"what": error.what, "remedy": error.remedy}]}
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    # Those of this file are not the author's.
    text = "".join(line for line in lines if f'"{__file__}"' not in line and "<frozen importlib" not in line).strip()
    try:
        said = str(error)
    except Exception:
        said = "(its text cannot be made)"
    what = f"{own_place(error, file)}: {type(error).__name__}" + (f": {said}" if said else "")
    return {"faults": [{"what": what.replace("\n", " ")[:1000], "cause": text[-8000:]}]}


def keep_memory() -> None:
    """Has the C library keep what arrays of a frame's size have freed, for those of the next frame: otherwise each is given
    back and comes in pages again, which takes longer than most arithmetic (mallopt(3))."""
    trim_threshold, mmap_threshold = -1, -3
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    mallopt(mmap_threshold, 32 << 20)
    mallopt(trim_threshold, 256 << 20)


class Stage:
    """The filter of this process."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.socket = link.Socket()

    def run(self) -> int:
        keep_memory()
        try:
            make = self.socket.hear()
            try:
                kind = load(self.file)
                if "describe" in make:
                    self.socket.say({"version": link.VERSION, "describe": describe(kind)})
                    return 0
                self.make(kind, make)
                self.socket.say({"negotiated": {}})
                if not make.get("starts"):
                    self.socket.hear()
                self.filter.start()
            except (Exception, SystemExit) as error:
                self.socket.say(fault(error, self.file))
                return 4
            gc.collect()
            # What is there now is looked at by no further collection, which would cost frames.
            gc.freeze()
            threading.Thread(target=self.show_figures, daemon=True).start()
            self.socket.say({"ready": True})
            self.serve()
        except link.Gone:
            pass
        return 0

    def make(self, kind: typing.Type[Filter], words: dict) -> None:
        self.memory = link.Memory()
        head = self.memory.head
        self.frames = [self.frame(index) for index in range(head.buffers)]
        rate = words.get("format", {}).get("frameRate", [0, 1])
        filter = kind()
        filter._say = self.socket.say
        filter.id, filter.folder, filter.is_live = words["stage"], words["folder"], bool(words.get("isLive"))
        filter.format = Format(head.pixel_format.decode(), head.width, head.height, rate[0] / rate[1] if rate[1] else 0.0)
        options = words.get("options", {})
        if kind.Options is None:
            filter.options = types.SimpleNamespace()
        else:
            filter.options = self.typed(kind.Options(), options)
        self.filter = filter
        self.commands = {name: getattr(filter, method) for name, (_, method) in commands(kind).items()}
        filter.negotiate()

    @staticmethod
    def typed(options: Any, values: dict) -> Any:
        """The options with other values. The host has checked them; a whole number may stand for a float."""
        hints = typing.get_type_hints(type(options))
        known = dict(values)
        for key, value in values.items():
            for kind in float, int:
                if hints[key] in (kind, Optional[kind]) and value is not None:
                    known[key] = kind(value)
        return dataclasses.replace(options, **known)

    def frame(self, index: int) -> Frame:
        frame = Frame()
        frame.planes = views(self.memory, index)
        return frame

    def show_figures(self) -> None:
        """Tells them twice a second, if they have changed."""
        told, complaint = link.encoded(None), ""
        while True:
            time.sleep(0.5)
            try:
                figures = link.encoded(self.filter.figures)
                if figures != told:
                    self.socket.say({"state": True, "figures": json.loads(figures)})
                    told = figures
            except Exception as error:
                # Such as a dictionary that changes meanwhile. Told once in half a second at most.
                if str(error) != complaint:
                    complaint = str(error)
                    self.socket.say({"event": "log", "level": "warning", "text": f"Its figures cannot be shown: {error}"[:1000], "details": {}})

    # MARK: Calls

    def serve(self) -> None:
        memory, call = self.memory, self.memory.call
        while True:
            memory.wait()
            if call.op == link.FRAME:
                self.process(call)
            elif call.op == link.STOP:
                self.answer(self.filter.stop)
                return
            elif call.op == link.SET:
                self.answer(lambda: self.set(json.loads(memory.text())))
            elif call.op == link.COMMAND:
                self.answer(lambda: self.command(json.loads(memory.text())))
            else:
                memory.answer(link.DONE)

    def process(self, call: link.Call) -> None:
        memory = self.memory
        frame, item = self.frames[call.buffer], call.item
        frame.pts, frame.duration, frame.captured_at, frame.number = item.pts, item.duration, item.captured_at, item.number
        frame.is_discontinuity = bool(item.flags & link.DISCONTINUITY)
        frame.is_substitute = bool(item.flags & link.SUBSTITUTE)
        memory.reply.item = item
        try:
            verdict = self.filter.process(frame)
        except (Exception, SystemExit) as error:
            memory.answer(link.FAULT, self.text(error))
            return
        memory.answer(link.DROP if verdict is DROP else link.FORWARD)

    def answer(self, body: typing.Callable[[], Any]) -> None:
        try:
            body()
        except (Exception, SystemExit) as error:
            self.memory.answer(link.FAILED, self.text(error))
            return
        self.memory.answer(link.DONE)

    def text(self, error: BaseException) -> bytes:
        text = json.dumps(fault(error, self.file)).encode()
        if len(text) > link.TEXT:
            text = json.dumps({"faults": [{"what": f"{own_place(error, self.file)}: {type(error).__name__}"}]}).encode()
        return text

    def set(self, values: dict) -> None:
        before = self.filter.options
        self.filter.options = self.typed(before, values)
        try:
            self.filter.options_changed()
        except Exception:
            self.filter.options = before
            raise

    def command(self, words: dict) -> None:
        method = self.commands.get(words.get("name", ""))
        if method is None:
            raise Refusal(f"has no command '{words.get('name')}'")
        arguments = words.get("arguments", {})
        try:
            inspect.signature(method).bind(**arguments)
        except TypeError as error:
            raise Refusal(f"the arguments of the command do not fit: {error}", "`framehost describe` lists them.") from None
        method(**arguments)


def main() -> int:
    if len(sys.argv) != 2:
        print("framehost starts this program: write { \"use\": \"python:FILE.py\" } into a chain.", file=sys.stderr)
        return 2
    return Stage(sys.argv[1]).run()


if __name__ == "__main__":
    # An exit handler of a library cannot hold up the host.
    status = main()
    sys.stdout.flush()
    os._exit(status)
