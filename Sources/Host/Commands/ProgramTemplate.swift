// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The files of a new filter in Python or C: `framehost new filter --language python NAME`.
struct ProgramTemplate {
    enum Language: String, CaseIterable, Sendable {
        case swift, python, c
    }

    let id: String
    private let language: Language
    /// The folder of the C headers.
    private let headers: String

    /// - Throws: ``FrameHostError`` for a kind that is no filter, and a name that is not a valid id.
    init(_ language: Language, _ kind: StageKind, id: String, core: String) throws {
        guard kind == .filter else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace("'\(kind.rawValue)'"),
                what: "cannot be written in another language than Swift yet",
                remedy: "Write `framehost new filter --language \(language.rawValue) \(id)`.")
        }
        try PluginTemplate.checkID(id)
        (self.language, self.id) = (language, id)
        headers = "\(core)/StageLink/include"
    }

    /// The file's name without its ending, as Python imports it.
    private var module: String { id.replacing("-", with: "_") }
    /// `NightMode` from `night-mode`.
    private var type: String {
        id.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// Path in the folder, text.
    ///
    /// - Throws: ``FrameHostError`` if Core's headers cannot be read.
    func files() throws -> [(path: String, text: String)] {
        switch language {
        case .swift: []
        case .python:
            [
                ("\(module).py", Self.python.replacing("TYPE", with: type)),
                ("test_\(module).py", test), ("chain.json", chain("python:\(module).py", ", \"amount\": 0.7")),
                ("README.md", readme), (".gitignore", "__pycache__/\n"),
            ]
        case .c:
            [
                ("\(id).c", Self.c), ("Makefile", makefile), ("stage_link.h", try header("stage_link.h")),
                ("stage_filter.h", try header("stage_filter.h")), ("chain.json", chain("program:\(id)", "")),
                ("README.md", readme), (".gitignore", "\(id)\n"),
            ]
        }
    }

    var nextSteps: String {
        switch language {
        case .swift: ""
        case .python:
            """
            \(id)/ is ready. In it:
              PYTHONPATH=$(framehost --python-path) python3 -m unittest   runs its test
              framehost chain.json                                        runs the chain
            The filter is \(module).py. With --watch-plugins it is taken anew whenever you save it.
            """
        case .c:
            """
            \(id)/ is ready. In it:
              make                  builds the filter
              framehost chain.json  runs the chain
            The filter is \(id).c.
            """
        }
    }

    private func header(_ name: String) throws -> String {
        String(decoding: try RunFiles.contents(of: "\(headers)/\(name)", option: "--core"), as: UTF8.self)
    }

    private func chain(_ use: String, _ options: String) -> String {
        """
        {
          "stages": [
            { "use": "test-source", "size": "640x360", "rate": 30, "frames": 90 },
            { "id": "\(id)", "use": "\(use)"\(options) },
            { "use": "null-sink" }
          ]
        }

        """
    }

    private var readme: String {
        let commands =
            language == .python ? "PYTHONPATH=$(framehost --python-path) python3 -m unittest\n" : "make\n"
        return """
            # \(id)

            A framehost filter in \(language == .python ? "Python" : "C").

            ```
            \(commands)framehost chain.json
            ```

            """
    }

    private static let python = """
        import framehost


        class TYPE(framehost.Filter):
            \"\"\"Darkens the picture.\"\"\"

            formats = ["i420", "nv12", "gray8"]
            modifies = True

            @framehost.options
            class Options:
                amount: float = framehost.option(0.5, "0 changes nothing, 1 makes it black.", minimum=0, maximum=1, live=True)

            def process(self, frame):
                luma = frame.planes[0]
                luma[:] = luma * (1 - self.options.amount)

        """

    private var test: String {
        """
        import unittest

        import framehost.testing
        from \(module) import \(type)


        class \(type)Tests(unittest.TestCase):
            def test_darkens(self):
                filter = framehost.testing.make(\(type), "gray8", 64, 48, amount=0.5)
                frame = framehost.testing.frame("gray8", 64, 48, fill=200)
                filter.process(frame)
                self.assertTrue((frame.pixels == 100).all())


        if __name__ == "__main__":
            unittest.main()

        """
    }

    private static let c = """
        #include "stage_filter.h"

        static const char description[] =
            "{\\"summary\\": \\"Darkens the picture.\\", \\"formats\\": [\\"i420\\", \\"nv12\\", \\"gray8\\"], \\"modifies\\": true}";

        int main(void) {
            static struct fh_filter filter;
            if (fh_make(&filter, description) != 0 || fh_start(&filter) != 0) return 1;
            struct fh_call *call;
            while ((call = fh_next(&filter)) != NULL) {
                const struct fh_plane *luma = &filter.control->plane[0];
                for (uint32_t row = 0; row < luma->rows; row++) {
                    uint8_t *bytes = fh_row(&filter, call, 0, row);
                    for (uint32_t index = 0; index < luma->row_bytes; index++) bytes[index] /= 2;
                }
                fh_answer(&filter, FH_FORWARD);
            }
            return 0;
        }

        """

    private var makefile: String {
        "\(id): \(id).c stage_filter.h stage_link.h\n\t$(CC) -O2 -Wall -o $@ $<\n"
    }
}
