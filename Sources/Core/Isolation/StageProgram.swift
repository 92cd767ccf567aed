// SPDX-License-Identifier: Apache-2.0

/// A stage that is a program of its own, in any language: how it is started.
///
/// It speaks the protocol of `stage_link.h` with the host (docs/stage-protocol.md).
public struct StageProgram: Sendable, Equatable {
    /// As chain files name it: `python:blur.py`.
    public var name: String
    /// The program, by path or by a name that is searched for in `$PATH`, and its arguments.
    public var arguments: [String]
    /// Variables in place of those of the host, by name.
    public var environment: [String: String]

    /// The files that decide what it does: with others, its results are others.
    public var files: [String]

    /// Names a program.
    public init(name: String, arguments: [String], environment: [String: String] = [:], files: [String]) {
        (self.name, self.arguments, self.environment, self.files) = (name, arguments, environment, files)
    }

    /// [control thread] Starts the program to ask what stage it is.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin`: how its process ended, or what is wrong in its answer.
    public func describe() throws -> StageType {
        let link = try StageLink(self)
        try Supervisor.shared.start(link, ["describe": true])
        defer { try? Supervisor.shared.perform { link.end("has told what it is") } }
        switch link.wait(seconds: 30, for: { if case .made = $0 { false } else { true } }) {
        case .described(let words, let version):
            guard version == StageLink.version else {
                throw fault(
                    "speaks version \(version) of the stage protocol, and this framehost version \(StageLink.version)",
                    remedy: "Use the framehost package for Python, or stage_link.h, of this version.")
            }
            let description = try ProgramDescription(words, of: self)
            return StageType(description, self)
        case .gone(let death):
            if let refusal = death.refusal?.errors.first {
                throw fault(refusal.what, remedy: refusal.remedy, cause: refusal.cause)
            }
            throw fault(
                "its process \(death.what) before it had told what it is",
                remedy: "Run it as the chain does: \(arguments.joined(separator: " ")).",
                cause: death.lastWords.joined(separator: "\n"))
        default:
            throw fault(
                "it has not told within 30 s what it is", remedy: "Let it answer before it does anything else.")
        }
    }

    func fault(_ what: String, remedy: String, cause: String = "") -> FrameHostError {
        FrameHostError(.unusablePlugin, place: FaultPlace(name), what: what, remedy: remedy, cause: cause)
    }
}

extension StageType {
    /// The filter that a program is, which always runs in a process of its own.
    convenience init(_ description: ProgramDescription, _ program: StageProgram) {
        self.init(
            description.info, options: description.options.map { OptionField($0.name, $0.option) }, program,
            check: { members, place in
                let found = OptionDecoder.set(members, of: description.definitions, .stage).found
                guard found.isEmpty else { throw OptionDecoder.errors(found, place) }
            },
            checkChange: { members, place in
                try StageInstance.checkLive(
                    members, description.options.map { OptionField($0.name, $0.option) }, place)
                let found = OptionDecoder.set(members, of: description.definitions, .change).found
                guard found.isEmpty else { throw OptionDecoder.errors(found, place) }
            })
    }
}
