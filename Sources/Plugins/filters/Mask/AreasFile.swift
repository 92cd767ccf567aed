// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The file that keeps the areas between runs: `{ "use": "mask", "areas": […] }`, without `use` where a person wrote it.
///
/// It is read at the start, and written by jobs: the newest areas, as often as a job gets to it. A file that has
/// another shape is never replaced.
final class AreasFile: Sendable {
    private struct Content: OptionObject {
        @Option(help: "Says whose file it is.") var use = "mask"
        @Option(help: "The areas.", count: 0...MaskArea.most, required: true) var areas: [MaskArea] = []

        func validate() throws {
            guard use != "mask" else { return }
            throw OptionFault("the file is of '\(use)', not of 'mask'", remedy: "", options: ["use"])
        }
    }

    private struct Waiting {
        /// The areas that are to be written; nil while no job waits.
        var areas: [MaskArea]?
    }

    /// 64 areas with 64 corners each take less than 300 kB.
    private static let mostBytes = 1 << 20
    private let named: String
    /// The file itself, where a person gave the name of a link.
    private var path: String { FileNames.followed(named) }
    /// As the chain file has it.
    private let name: String
    private let context: StageContext
    private let waiting = Locked(Waiting())

    init(_ name: String, _ context: StageContext) {
        (self.name, self.context) = (name, context)
        named = context.resolve(name)
    }

    /// [any thread] The areas that the file has; nil where there is no file.
    ///
    /// - Throws: ``FrameHostError`` with the option as its place: a file that cannot be read, or is no file of areas.
    func read() throws(FrameHostError) -> [MaskArea]? { try look()?.areas }

    /// The file's areas and its identity.
    private func look() throws(FrameHostError) -> (areas: [MaskArea], identity: FileIdentity)? {
        guard let identity = FileIdentity(path: path) else {
            // A folder that may not be searched.
            if let refusal = context.files.refusalOfWriting(path), refusal != .absent {
                var fault = refusal.fault(path)
                fault.place = "areasFile"
                throw fault
            }
            return nil
        }
        let bytes = try RunFiles.contents(of: path, option: "areasFile", mostBytes: Self.mostBytes)
        let node: JSONNode
        do { node = try JSONReader.read(bytes, file: name) } catch {
            throw wrong("is no JSON: \(FrameHostError.wrap(error))")
        }
        do throws(OptionFault) { return (try Content.decodeOption(node).areas, identity) } catch {
            let inside = error.pathInside.drop { $0 == "." }
            let place = error.textPlace.map { "\(name):\($0): " } ?? ""
            throw wrong(
                "is no list of areas: \(place)\(inside.isEmpty ? "" : "\(inside): ")\(error.what)", remedy: error.remedy
            )
        }
    }

    private func wrong(_ what: String, remedy: String = "") -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "areasFile", what: "'\(name)' \(what)",
            remedy: [
                remedy,
                "Correct the file, remove it so that 'areas' holds, or name another file. It stays as it is.",
            ].filter { !$0.isEmpty }.joined(separator: " "))
    }

    /// [stage thread] Keeps the areas. Does not wait for the disk.
    func write(_ areas: [MaskArea]) {
        let isFirst = waiting.withLock { waiting in
            defer { waiting.areas = areas }
            return waiting.areas == nil
        }
        guard isFirst else { return }
        context.addJob("writing \(name)") { [self] _ in writeNewest() }
    }

    /// [jobs] Writes the newest areas in place of the file.
    private func writeNewest() {
        let areas = waiting.withLock { waiting in
            defer { waiting.areas = nil }
            return waiting.areas
        }
        guard let areas else { return }
        do {
            let old = try look()
            let text = Self.text(areas)
            do throws(FileRefusal) {
                try context.files.put(
                    path, Array(text.utf8), replacing: old?.identity, as: context.stageID, syncs: true, isRenewed: true)
            } catch { throw error.fault(path) }
            context.post(
                "areas-saved", level: .debug, text: "Has written the areas to \(name).",
                details: ["path": .string(path), "areas": .number(areas.count)])
        } catch {
            let fault = FrameHostError.wrap(error)
            context.post(
                "areas-not-saved", level: .warning,
                text:
                    "The new areas hold for this run, but are not kept in \(name), because \(fault.what). \(fault.remedy)",
                details: ["path": .string(path), "reason": .string(fault.what)])
        }
    }

    /// An area on each line.
    private static func text(_ areas: [MaskArea]) -> String {
        let lines = areas.map { "    \($0.optionJSON.text())" }.joined(separator: ",\n")
        return "{\n  \"use\": \"mask\",\n  \"areas\": [\(lines.isEmpty ? "" : "\n\(lines)\n  ")]\n}\n"
    }
}
