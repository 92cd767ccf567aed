// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The installed effects, for `framehost describe frei0r` and `framehost describe frei0r NAME`.
enum EffectTopics {
    /// All effects of these kinds, and those that do not load, with the reason. [control thread]
    ///
    /// Loads every effect, since only the effect itself knows its kind.
    static func all(_ kinds: [EffectLibrary.Kind]) -> [StageTopic] {
        EffectFolders().effects.compactMap { name, path in
            do {
                let library = try EffectLibrary(path: path)
                return kinds.contains(library.kind) ? StageTopic(name, summary: library.explanation.oneLine) : nil
            } catch {
                return StageTopic(name, summary: FrameHostError.wrap(error).what)
            }
        }
    }

    /// An effect with its parameters and their initial values; nil when it is not installed. [control thread]
    ///
    /// - Throws: ``FrameHostError`` when it does not load or is of another kind.
    static func topic(_ name: String, of kinds: [EffectLibrary.Kind], stage: String) throws -> StageTopic? {
        guard let effect = EffectFolders().effects.first(where: { $0.name.lowercased() == name.lowercased() }) else {
            return nil
        }
        let library = try EffectLibrary(path: effect.path)
        try library.require(kinds, stage: stage)
        // Some defaults depend on the size. Any size will do.
        let instance = try EffectInstance(library, width: 1280, height: 720)
        return StageTopic(
            effect.name, summary: library.explanation.oneLine,
            facts: [
                StageTopic.Fact("kind", library.kind.words), StageTopic.Fact("version", library.version),
                StageTopic.Fact("author", library.author.oneLine), StageTopic.Fact("file", library.path),
            ],
            values: library.parameters.map { $0.field(defaultValue: instance.present($0)) }, option: "parameters")
    }
}

extension String {
    /// The text on one line: some effects break lines and indent.
    var oneLine: String { split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}
