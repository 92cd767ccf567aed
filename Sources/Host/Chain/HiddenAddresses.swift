// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension JSONNode {
    /// This chain, which a client got without the secrets of its addresses and may have edited, with the addresses of
    /// `original` where it still has what stands for them.
    ///
    /// Stages belong together by their ids, elements of other lists by their order.
    func restoringAddresses(of original: JSONNode) -> JSONNode {
        switch value {
        case .string(let text):
            guard let whole = original.asString, whole != text, original.hidingAddressValues.asString == text else {
                return self
            }
            return JSONNode(.string(whole), place: place)
        case .array(let elements):
            let originals = original.asArray ?? []
            return JSONNode(
                .array(
                    elements.enumerated().map { index, element in
                        let own = index < originals.count ? originals[index] : nil
                        guard let id = element["id"] else { return own.map(element.restoringAddresses) ?? element }
                        let same = originals.first { $0["id"]?.withoutPlaces == id.withoutPlaces }
                        return (same ?? own).map(element.restoringAddresses) ?? element
                    }), place: place)
        case .object(let members):
            return JSONNode(
                .object(
                    members.map { member in
                        var member = member
                        if let own = original[member.key] { member.value = member.value.restoringAddresses(of: own) }
                        return member
                    }), place: place)
        default: return self
        }
    }
}
