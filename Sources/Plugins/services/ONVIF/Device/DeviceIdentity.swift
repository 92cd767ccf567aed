// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import ServerAccess

/// What tells this device from all others, the same after each start: made of a digest over the machine's id, the
/// chain's name, the port, and the address if the device has one of the machine's. Nobody can tell the machine's id from it (machine-id(5) asks for that).
struct DeviceIdentity: Sendable, Equatable {
    /// `urn:uuid:` goes before it.
    var uuid: String
    /// Locally administered, `02:…`.
    var hardwareAddress: String

    /// - Parameter address: Empty where the device listens at all addresses.
    init(machine: String, chain: String, port: Int, address: String = "") {
        let place = address.isEmpty ? "" : "\0\(address)"
        var bytes = Array(
            MessageDigest.sha256(Array("framehost onvif\0\(machine)\0\(chain)\0\(port)\(place)".utf8)))
        hardwareAddress = (["02"] + bytes[16..<21].map { ASCII.hex([$0]) }).joined(separator: ":")
        // RFC 9562, 5.8: a UUID of our own kind.
        bytes[6] = bytes[6] & 15 | 0x80
        bytes[8] = bytes[8] & 0x3f | 0x80
        let text = ASCII.hex(bytes[..<16])
        var parts: [Substring] = []
        var rest = text[...]
        for count in [8, 4, 4, 4, 12] {
            parts.append(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        uuid = parts.joined(separator: "-")
    }

    /// The machine's id; its name where there is none, as in some containers.
    static func machine() -> String {
        for path in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
            if let bytes = try? RunFiles.contents(of: path, option: "", mostBytes: 64) {
                let text = String(decoding: bytes, as: UTF8.self).filter { $0.isLetter || $0.isNumber }
                if !text.isEmpty { return text }
            }
        }
        return hostName()
    }

    static func hostName() -> String {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return "framehost" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
