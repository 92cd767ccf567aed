// SPDX-License-Identifier: Apache-2.0

/// The name and the memory layout of a kind of metadata: two images of a plugin have the same kind when these are
/// equal.
///
/// A plugin that is rebuilt while a chain runs brings the same kinds as different Swift types. The new image reads
/// frames that the old one marked, so both must lay out the bytes in the same way.
struct MetadataIdentity: Equatable {
    let name: String
    /// FNV-1a over ``ValueLayout``, 64 bit.
    let layout: UInt64

    /// Nil where values are more than plain bytes: only the image that made one can read it.
    init?<Value: FrameMetadata>(_ type: Value.Type) {
        guard let text = ValueLayout.text(of: type) else { return nil }
        name = Self.name(of: type)
        layout = text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    /// `NightMode.Marker`. The long name of a private type contains an address, which differs from image to image.
    /// Its short name contains the number of its file.
    static func name(of type: any FrameMetadata.Type) -> String {
        let parts = _typeName(type, qualified: true).split(separator: "(unknown context at $")
        guard parts.count > 1 else { return _typeName(type, qualified: true) }
        let known = parts.dropFirst().map { $0.drop { $0 != ")" }.dropFirst(2) }
        return "\(parts[0])\(known.joined()) (\(_typeName(type, qualified: false)))"
    }
}

extension MetadataLayout {
    /// The index of `type`, or of the type that is the same in another image of its plugin; nil where there is
    /// neither.
    func index(of type: any FrameMetadata.Type) -> Int? {
        if let index = entries.firstIndex(where: { $0.type == type }) { return index }
        guard let identity = MetadataIdentity(type) else { return nil }
        return entries.firstIndex { MetadataIdentity($0.type) == identity }
    }

    /// Why frames of the chain have no room for `type`, after the stage's name.
    func refusal(of type: any FrameMetadata.Type) -> String {
        let name = MetadataIdentity.name(of: type)
        guard entries.contains(where: { MetadataIdentity.name(of: $0.type) == name }) else {
            return "needs metadata '\(type.metadataName)', for which the frames of the running chain have no room"
        }
        return MetadataIdentity(type) == nil
            ? "has the metadata '\(type.metadataName)' of a rebuilt plugin, and only the build that wrote such a value can read it"
            : "has another memory layout of the metadata '\(type.metadataName)' than the frames of the running chain"
    }
}
