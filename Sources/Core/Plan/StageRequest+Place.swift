// SPDX-License-Identifier: Apache-2.0

extension StageRequest {
    /// Checks only the options.
    ///
    /// - Throws: ``FrameHostErrors``.
    public func checkOptions(file: String) throws {
        try type.check(options) { place(file: file, of: $0, at: $1) }
    }

    /// The option that has this file's name; `path` where no option has it.
    func key(ofFile path: String) -> String {
        options.first { member in
            guard let name = member.value.asString, !name.isEmpty else { return false }
            return path == name || path.hasSuffix("/\(name)")
        }?.key ?? "path"
    }

    // MARK: Places

    /// The place of one of its members: an option (`rate`, `parameters.blur`), a key of its own (`link.queue`), or the
    /// stage itself (empty). For example `camera.json:7:5: stages[2].rate`; for a value from the command line, the
    /// argument.
    ///
    /// - Parameter text: The member's place in the text, where it is known more exactly than by its key.
    func place(file: String, of key: String, at text: TextPlace? = nil) -> FaultPlace {
        FaultPlace(
            file: file, position: key.isEmpty ? place : text ?? textPlace(of: key),
            path: "stages[\(fileIndex)]" + (key.isEmpty ? "" : ".\(key)"),
            argument: settings[Self.option(in: key)], stage: id)
    }

    /// An error that the stage threw before the run, with its place in the file.
    ///
    /// An error whose place is an option (`path`, `parameters.blur`) gets that option's place. So does an error without
    /// a place whose ``FrameHostError/option`` is written in the file. Any other error gets the place of the stage.
    func placed(_ error: any Error, file: String) -> FrameHostError {
        var fault = FrameHostError.wrap(error)
        let words = fault.place.description
        // Or it is a key that every stage has, such as `from`.
        let isOption = type.options.contains { $0.name == Self.option(in: words) } || ownPlaces[words] != nil
        let key = isOption ? words : words.isEmpty ? options.first { $0.key == fault.option }?.key ?? "" : ""
        guard !key.isEmpty else {
            var place = place(file: file, of: "")
            place.title = "'\(id)'"
            return fault.within(place)
        }
        fault.place = place(file: file, of: key)
        fault.option = Self.option(in: key)
        return fault
    }

    /// `parameters` of `parameters.blur`, `each` of `each[2].tint`.
    private static func option(in key: String) -> String { String(key.prefix { $0 != "." && $0 != "[" }) }

    /// The place of the key in the text, as deep as it exists; the stage's for a key that is not written.
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
