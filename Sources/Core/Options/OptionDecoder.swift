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
        let definitions = Dictionary(
            uniqueKeysWithValues: Mirror(reflecting: base).children.compactMap { child -> (String, any AnyOption)? in
                guard let option = child.value as? any AnyOption, let label = child.label else { return nil }
                return (String(label.dropFirst()), option)
            })
        var faults: [FrameHostError] = []
        var values = definitions
        /// Keys whose value is wrong in itself.
        var wrong: Set<String> = []
        for member in members {
            guard let definition = definitions[member.key] else {
                faults.append(
                    FrameHostError(
                        .invalidConfiguration, place: place(member.key, member.keyPlace), what: "no such option",
                        remedy: remedy(
                            forUnknown: member, among: definitions.keys.sorted(), isChange, isService),
                        reason: .noSuchKey, option: member.key))
                continue
            }
            do {
                values[member.key] = try definition.setting(member.value)
            } catch {
                wrong.insert(member.key)
                let defaultText =
                    definition.currentJSON.value == .null || isChange
                    ? "" : ", or leave the key out for \(definition.currentJSON.text())"
                let remedy =
                    error.remedy.isEmpty || error.remedy.hasSuffix(".") || error.remedy.hasSuffix("?")
                    ? error.remedy : error.remedy + defaultText + "."
                faults.append(
                    FrameHostError(
                        .invalidConfiguration, place: place(member.key, member.value.place), what: error.what,
                        remedy: remedy, option: member.key))
            }
        }
        // Validated with the values that are right in themselves, so that one look shows the faults of both kinds.
        let options = try Options(from: ValueDecoder(values: values))
        for fault in Self.faults(of: options) {
            let named = fault.options.lazy.compactMap { name in members.last { $0.key == name } }.first
            // A value that is wrong in itself was left out here, so this fault says nothing about what the
            // options need.
            if let named, wrong.contains(named.key) { continue }
            faults.append(
                FrameHostError(
                    .invalidConfiguration,
                    place: place(named?.key ?? "", named?.keyPlace ?? TextPlace(line: 0, column: 0)),
                    what: fault.what, remedy: fault.remedy, option: named?.key ?? fault.options.first))
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return options
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
        forUnknown member: JSONNode.Member, among names: [String], _ isChange: Bool, _ isService: Bool
    ) -> String {
        guard !names.isEmpty else {
            return "Leave '\(member.key)' out: this \(isService ? "service" : "stage") has no options."
        }
        // Other programs have the options in an object of their own.
        if member.key == "options", member.value.asObject != nil {
            let level = isChange || isService ? "one level higher" : "beside 'use'"
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
