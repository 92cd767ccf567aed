extension StageRequest {
    /// Checks the options alone.
    ///
    /// - Throws: ``FrameHostErrors``.
    public func checkOptions(file: String) throws {
        try type.check(options) { optionPlace(file: file, $0, $1) }
    }

    /// The option that names a file; `path` where none of them reads like it.
    func key(ofFile path: String) -> String {
        options.first { member in
            guard let name = member.value.asString, !name.isEmpty else { return false }
            return path == name || path.hasSuffix("/\(name)")
        }?.key ?? "path"
    }

    /// `camera.json:7:5: stages[2].rate`; of a value from the command line, that.
    func optionPlace(file: String, _ key: String, _ text: TextPlace) -> String {
        if let setting = settings[Self.option(in: key)] { return setting }
        let shown = key.isEmpty ? place : text
        let position = shown.line > 0 ? ":\(shown.line):\(shown.column)" : ""
        return "\(file)\(position): stages[\(fileIndex)]" + (key.isEmpty ? "" : ".\(key)")
    }

    /// What the stage threw before the run, at its place in the file.
    ///
    /// An error whose place is an option (`path`, `parameters.blur`) stands there; so does one whose sentence names an
    /// option that is written in the file, or what is written there; any other at the stage.
    func placed(_ error: any Error, file: String) -> FrameHostError {
        var fault = FrameHostError.wrap(error)
        let isOption = type.options.contains { $0.name == Self.option(in: fault.place) }
        let key =
            isOption
            ? fault.place : fault.place.isEmpty ? Self.optionNamed(in: fault.what, or: fault.remedy, options) ?? "" : ""
        guard !key.isEmpty else { return fault.within(optionPlace(file: file, "", place) + " '\(id)'") }
        fault.place = optionPlace(file: file, key, textPlace(of: key))
        return fault
    }

    /// The option of `members` that a sentence is about: quoted in it ("'track' is 3"), its first word ("stamp needs
    /// …"), by the text it was given ("'/clips/no.mp4' does not exist"), or else quoted in the remedy.
    static func optionNamed(in what: String, or remedy: String = "", _ members: [JSONNode.Member]) -> String? {
        func quoted(_ text: String) -> String? {
            members.compactMap { member in
                text.firstRange(of: "'\(member.key)'").map { (at: $0.lowerBound, key: member.key) }
            }
            .min { $0.at < $1.at }?.key
        }
        if let found = quoted(what) { return found }
        let first = what.prefix { $0 != " " && $0 != ":" }
        if let member = members.first(where: { $0.key == first }) { return member.key }
        func isQuoted(_ value: String?) -> Bool {
            value.map { $0.utf8.count >= 3 && what.firstRange(of: $0) != nil } ?? false
        }
        return members.first { isQuoted($0.value.asString) }?.key ?? quoted(remedy)
    }

    /// `parameters` of `parameters.blur`, `each` of `each[2].tint`.
    private static func option(in key: String) -> String { String(key.prefix { $0 != "." && $0 != "[" }) }

    /// Where the key stands, as far into it as there is something; the stage for an option that is not written.
    func textPlace(of key: String) -> TextPlace {
        var found = place
        var members = options
        for part in key.split(separator: ".") {
            guard let member = members.first(where: { $0.key == part }) else { break }
            found = member.keyPlace
            members = member.value.asObject ?? []
        }
        return found
    }
}
