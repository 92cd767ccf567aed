// SPDX-License-Identifier: Apache-2.0

extension JSONNode {
    /// The same value with each string as `show` gives it. Keys stay.
    private func showing(_ show: (String) -> String) -> JSONNode {
        switch value {
        case .string(let text): JSONNode(.string(show(text)), place: place)
        case .array(let elements): JSONNode(.array(elements.map { $0.showing(show) }), place: place)
        case .object(let members):
            JSONNode(
                .object(
                    members.map {
                        var member = $0
                        member.value = $0.value.showing(show)
                        return member
                    }), place: place)
        default: self
        }
    }

    private var mayHaveSecret: Bool {
        switch value {
        case .string(let text): text.mayHaveSecret
        case .array(let elements): elements.contains(where: \.mayHaveSecret)
        case .object(let members): members.contains { $0.value.mayHaveSecret }
        default: false
        }
    }

    /// The same value without the secrets of addresses in its strings, which are sentences.
    public var hidingAddresses: JSONNode { mayHaveSecret ? showing { $0.hidingAddresses() } : self }

    /// The same options without the secrets of their values.
    public var hidingAddressValues: JSONNode { mayHaveSecret ? showing { $0.hidingSecrets } : self }
}
