// SPDX-License-Identifier: Apache-2.0

extension StageRequest {
    /// Checks the options alone.
    ///
    /// - Throws: ``FrameHostErrors``.
    public func checkOptions(file: String) throws {
        try type.check(options) { place(file: file, of: $0, at: $1) }
    }

    /// The option that names a file; `path` where none of them reads like it.
    func key(ofFile path: String) -> String {
        options.first { member in
            guard let name = member.value.asString, !name.isEmpty else { return false }
            return path == name || path.hasSuffix("/\(name)")
        }?.key ?? "path"
    }

    // MARK: Places

    /// Of one of its members: an option (`rate`, `parameters.blur`), a key of its own (`link.queue`), or the stage
    /// itself (empty). `camera.json:7:5: stages[2].rate`; of a value from the command line, that.
    ///
    /// - Parameter text: Where that stands, where it is known better than by its key.
    func place(file: String, of key: String, at text: TextPlace? = nil) -> FaultPlace {
        FaultPlace(
            file: file, position: key.isEmpty ? place : text ?? textPlace(of: key),
            path: "stages[\(fileIndex)]" + (key.isEmpty ? "" : ".\(key)"),
            argument: settings[Self.option(in: key)], stage: id)
    }

    /// What the stage threw before the run, at its place in the file.
    ///
    /// An error whose place is an option (`path`, `parameters.blur`) stands there; so does one whose sentence names an
    /// option that is written in the file, or what is written there; any other at the stage.
    func placed(_ error: any Error, file: String) -> FrameHostError {
        var fault = FrameHostError.wrap(error)
        let words = fault.place.description
        let isOption = type.options.contains { $0.name == Self.option(in: words) }
        let key =
            isOption ? words : words.isEmpty ? OptionNaming.option(in: fault.what, or: fault.remedy, options) ?? "" : ""
        guard !key.isEmpty else {
            var place = place(file: file, of: "")
            place.title = "'\(id)'"
            return fault.within(place)
        }
        fault.place = place(file: file, of: key)
        return fault
    }

    /// `parameters` of `parameters.blur`, `each` of `each[2].tint`.
    private static func option(in key: String) -> String { String(key.prefix { $0 != "." && $0 != "[" }) }

    /// Where the key stands, as far into it as there is something; the stage for one that is not written.
    private func textPlace(of key: String) -> TextPlace {
        var found = place
        var members = options
        var path = ""
        for part in key.split(separator: ".") {
            path += path.isEmpty ? String(part) : ".\(part)"
            if let own = ownPlaces[path] {
                found = own
            } else if let member = members.first(where: { $0.key == part }) {
                found = member.keyPlace
                members = member.value.asObject ?? []
            } else {
                break
            }
        }
        return found
    }
}
