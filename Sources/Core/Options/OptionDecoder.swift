// SPDX-License-Identifier: Apache-2.0

/// Reads an options struct from JSON members: defaults, then each given value checked, all faults collected.
struct OptionDecoder {
    /// - Parameters:
    ///   - members: The stage's members without the reserved keys.
    ///   - base: The values to start from; the defaults, or the present values for a live change.
    ///   - isChange: Whether the options belong to a running stage. A remedy then does not say that a key may be
    ///     left out.
    ///   - isService: Whether the options are those of a service, which has no `use` beside them.
    ///   - place: Makes the place of a fault from a key and its value's place.
    /// - Throws: ``FrameHostErrors``.
    static func decode<Options: StageOptions>(
        _ type: Options.Type, from members: [JSONNode.Member], base: Options = Options(),
        isChange: Bool = false, isService: Bool = false, place: OptionPlace
    ) throws -> Options {
        for member in members { WrittenValues.note(member.value) }
        let owner: Owner = isChange ? .change : isService ? .service : .stage
        let read = try read(Options.self, from: members, base: base, owner)
        guard read.found.isEmpty else { throw errors(read.found, place) }
        return read.options
    }

    /// Whose options are read, which decides what remedies say.
    enum Owner { case stage, change, service, object }

    /// A fault, and the member that it is about; the key is empty for one about the whole.
    struct Found {
        var fault: OptionFault
        var key: String
        var place: TextPlace
        var reason: FrameHostError.Reason?
        var option: String?
    }

    /// Reads the options as far as they are right, and finds what is wrong.
    static func read<Options: StageOptions>(
        _ type: Options.Type, from members: [JSONNode.Member], base: Options, _ owner: Owner
    ) throws -> (options: Options, found: [Found]) {
        let definitions = Dictionary(uniqueKeysWithValues: base.declared.map { ($0.name, $0.option) })
        let (values, wrong, unfit) = set(members, of: definitions, owner)
        var found = unfit
        // Validated with the values that are right in themselves, so that one look shows the faults of both kinds.
        let options = try Options(from: ValueDecoder(values: values))
        for fault in Self.faults(of: options) {
            let named = fault.options.lazy.compactMap { name in members.last { $0.key == name } }.first
            // A value that is wrong in itself was left out here, so this fault says nothing about what the
            // options need.
            if let named, wrong.contains(named.key) { continue }
            found.append(
                Found(
                    fault: fault, key: named?.key ?? "", place: named?.keyPlace ?? TextPlace(line: 0, column: 0),
                    option: named?.key ?? fault.options.first))
        }
        return (options, found)
    }

    /// Sets each value that is right in itself, and finds what is wrong.
    ///
    /// - Returns: All options as they are then; the keys whose value is wrong in itself; the faults.
    static func set(
        _ members: [JSONNode.Member], of definitions: [String: any AnyOption], _ owner: Owner
    ) -> (values: [String: any AnyOption], wrong: Set<String>, found: [Found]) {
        var found: [Found] = []
        var values = definitions
        var wrong: Set<String> = []
        for member in members {
            guard let definition = definitions[member.key] else {
                let fault = OptionFault(
                    "no such option", remedy: remedy(forUnknown: member, among: definitions.keys.sorted(), owner))
                found.append(
                    Found(
                        fault: fault, key: member.key, place: member.keyPlace, reason: .noSuchKey, option: member.key))
                continue
            }
            do {
                values[member.key] = try definition.setting(member.value)
            } catch {
                wrong.insert(member.key)
                found += error.all.map { fault in
                    var fault = fault
                    fault.remedy = remedy(of: fault, definition, owner)
                    return Found(fault: fault, key: member.key, place: member.value.place, option: member.key)
                }
            }
        }
        if owner != .change { found += missing(definitions, members) }
        return (values, wrong, found)
    }

    /// The faults with their places.
    static func errors(_ found: [Found], _ place: OptionPlace) -> FrameHostErrors {
        FrameHostErrors(
            found.map { found in
                FrameHostError(
                    .invalidConfiguration,
                    place: place(
                        found.key + (found.fault.namedPlace?.path ?? ""),
                        found.fault.namedPlace?.text ?? found.place),
                    what: found.fault.what, remedy: found.fault.remedy, reason: found.reason, option: found.option)
            })
    }

    /// Options that must be written and are not.
    private static func missing(_ definitions: [String: any AnyOption], _ members: [JSONNode.Member]) -> [Found] {
        definitions.filter { name, option in
            option.definition.isRequired && !members.contains { $0.key == name }
        }.sorted { $0.key < $1.key }.map { name, option in
            Found(
                fault: OptionFault(
                    "'\(name)' is missing", remedy: "Add the key '\(name)'. \(option.definition.help)"), key: "",
                place: TextPlace(line: 0, column: 0), option: name)
        }
    }

    /// The remedy of a fault in a value, with what holds if the key is left out.
    private static func remedy(of fault: OptionFault, _ option: any AnyOption, _ owner: Owner) -> String {
        let remedy = fault.remedy
        guard !remedy.isEmpty, !remedy.hasSuffix("."), !remedy.hasSuffix("?") else { return remedy }
        let usual = option.currentJSON
        let hasDefault = usual.value != .null && owner != .change && !option.definition.isRequired
        return remedy + (hasDefault ? ", or leave the key out for \(usual.text())" : "") + "."
    }

    /// The rules between options that `options` break.
    private static func faults(of options: some StageOptions) -> [OptionFault] {
        do { try options.validate() } catch {
            return (error as? OptionFaults)?.faults
                ?? [error as? OptionFault ?? OptionFault(String(describing: error), remedy: "")]
        }
        return []
    }

    private static func remedy(
        forUnknown member: JSONNode.Member, among names: [String], _ owner: Owner
    ) -> String {
        guard !names.isEmpty else {
            return "Leave '\(member.key)' out: this \(owner == .service ? "service" : "stage") has no options."
        }
        // Other programs have the options in an object of their own.
        if member.key == "options", owner != .object, member.value.asObject != nil {
            let level = owner == .stage ? "beside 'use'" : "one level higher"
            return "Write the options \(level), without \"options\"."
        }
        if let near = Suggestion.nearest(to: member.key, in: names) { return "Did you mean '\(near)'?" }
        return names.count == 1
            ? "Leave '\(member.key)' out: the only option is '\(names[0])'."
            : "Use one of the available options: \(quotedList(names, "and"))."
    }
}

/// Hands the compiler's `init(from:)` the wrapped options that `OptionDecoder` has prepared, by property name.
private struct ValueDecoder: Decoder {
    let values: [String: any AnyOption]
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Container<Key>(values: values))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Self.misuse }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Self.misuse }

    static let misuse = FrameHostError(
        .broken, what: "the options of this stage or service are declared wrongly",
        remedy:
            "Tell the plugin's author: every property of a StageOptions type must be an @Option, and the type must have no CodingKeys or init(from:) of its own."
    )

    struct Container<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let values: [String: any AnyOption]
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { values.keys.compactMap { Key(stringValue: $0) } }
        func contains(_ key: Key) -> Bool { values[key.stringValue] != nil }
        func decodeNil(forKey key: Key) throws -> Bool { false }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
            guard let value = values[key.stringValue] as? T else { throw ValueDecoder.misuse }
            return value
        }
        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
            -> KeyedDecodingContainer<Nested>
        { throw ValueDecoder.misuse }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw ValueDecoder.misuse
        }
        func superDecoder() throws -> any Decoder { throw ValueDecoder.misuse }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw ValueDecoder.misuse }
    }
}
