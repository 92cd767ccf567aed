// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The files that a chain's stages read beside the input (``StageDemand/readsFiles``), for any input.
///
/// The chain is asked with names in the place of `${input}`, `${output}` and `${name}` that no file has. So the answer
/// depends on no input, and shows which files differ from unit to unit.
struct ReadFiles: Sendable, Equatable {
    /// Paths that are the same for all inputs, in the order of the chain.
    private(set) var common: [String] = []
    /// Paths with ``input`` or ``name`` in them.
    private(set) var varying: [String] = []
    /// Whether the chain has answered.
    private(set) var isKnown = true

    /// What stands for `${input}`.
    private let input: String

    private static let stem = "/framehost-batch"
    private static let name = "framehost-batch-name"
    private static let output = "\(stem)/output"

    /// - Parameters:
    ///   - paths: What the stages read, with the names of ``variables(inputEnding:outputEnding:)``.
    ///   - inputEnding: As for ``variables(inputEnding:outputEnding:)``.
    init(paths: [String], inputEnding: String) {
        input = "\(Self.stem)/input\(inputEnding)"
        // What a stage reads below the output belongs to the attempt.
        for path in paths where path != input && !path.hasPrefix(Self.output) {
            if path.firstRange(of: input) != nil || path.firstRange(of: Self.name) != nil {
                if !varying.contains(path) { varying.append(path) }
            } else if !common.contains(path) {
                common.append(path)
            }
        }
    }

    /// The files of a unit that differ from unit to unit.
    func files(ofInput path: String, name: String) -> [String] {
        varying.map { $0.replacing(input, with: path).replacing(Self.name, with: name) }
    }

    /// The variables with which a chain is asked. Stages check the endings of names.
    static func variables(inputEnding: String, outputEnding: String) -> [(String, String)] {
        [("input", "\(stem)/input\(inputEnding)"), ("output", output + outputEnding), ("name", name)]
    }

    /// Asks `framehost check` in a process of its own, which loads the plugins and opens no file of the chain.
    ///
    /// - Parameters:
    ///   - arguments: The chain and its settings.
    ///   - folder: Where a file for the answer can be made.
    /// - Throws: ``FrameHostError`` if no process or file can be made.
    init(ofChain arguments: [String], _ units: BatchUnits, in folder: BatchFolder) throws {
        let path = units.input(0) ?? ""
        let ending = String(path.dropFirst(BatchFiles.withoutEnding(path).count))
        let (words, _) = try ChainTrial.check(
            ["--\(CheckCommand.readsOption)"] + arguments,
            variables: Self.variables(inputEnding: ending, outputEnding: units.ending), in: folder)
        let paths = words?["readsFiles"]?.asArray
        self.init(paths: (paths ?? []).compactMap(\.asString), inputEnding: ending)
        isKnown = paths != nil
    }
}
