// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import FrameCore

/// A user's JWT and the seed of its key, as in a file that `nsc` writes.
///
/// - SeeAlso: docs.nats.io, "NKeys" and "JWT"; RFC 8032 (Ed25519), RFC 4648 (base32, base64url).
struct NATSCredentials {
    /// The most bytes of the file.
    static let mostBytes = 65_536

    let token: String
    private let seed: [UInt8]

    /// Reads a file. It is read for each connection: a token may be renewed.
    ///
    /// - Throws: ``FrameHostError``, which shows nothing of the content.
    init(path: String) throws(FrameHostError) {
        let bytes = try RunFiles.contents(of: path, option: "credentials", mostBytes: Self.mostBytes)
        guard let read = Self(bytes) else {
            throw FrameHostError(
                .invalidConfiguration, place: "credentials",
                what:
                    "the file '\(path)' must hold a user's JWT and the seed of its key, each between two lines of dashes",
                remedy: "Write it with `nsc generate creds`, or correct 'credentials'.")
        }
        self = read
    }

    /// Nil where it is no such text.
    init?(_ bytes: [UInt8]) {
        let lines = bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }).map { line in
            Array(line.drop { $0 == 32 || $0 == 9 }.reversed().drop { $0 == 32 || $0 == 9 }.reversed())
        }
        let texts = lines.filter { !$0.isEmpty && !$0.starts(with: Array("---".utf8)) }
        guard let token = texts.first(where: { $0.starts(with: Array("eyJ".utf8)) }),
            token.allSatisfy({ Self.isTokenByte($0) }),
            let seed = texts.lazy.filter({ $0.starts(with: Array("SU".utf8)) }).compactMap({ Self.seed($0) }).first
        else { return nil }
        self.token = String(decoding: token, as: UTF8.self)
        self.seed = seed
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, 45, 46, 95: true
        default: false
        }
    }

    /// The 32 bytes of a user's seed: base32 of two bytes with the kind, the seed, and a CRC-16.
    static func seed(_ text: [UInt8]) -> [UInt8]? {
        guard let raw = base32(text), raw.count == 36, raw[0] & 0xF8 == 18 << 3,
            (raw[0] & 7) << 5 | raw[1] >> 3 == 20 << 3,
            crc16(raw[..<34]) == UInt16(raw[34]) | UInt16(raw[35]) << 8
        else { return nil }
        return Array(raw[2..<34])
    }

    /// Nil where a byte is no digit of base32.
    static func base32(_ text: [UInt8]) -> [UInt8]? {
        guard text.count <= 128 else { return nil }
        var (result, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        for byte in text {
            let digit: UInt8
            switch byte {
            case 65...90: digit = byte - 65
            case 50...55: digit = byte - 24
            default: return nil
            }
            (bits, count) = (bits << 5 | UInt32(digit), count + 5)
            guard count >= 8 else { continue }
            count -= 8
            result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            bits &= 1 << UInt32(count) - 1
        }
        return result
    }

    /// CRC-16/XMODEM.
    private static func crc16(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        bytes.reduce(0) { sum, byte in
            (0..<8).reduce(sum ^ UInt16(byte) << 8) { value, _ in
                value & 0x8000 != 0 ? value << 1 ^ 0x1021 : value << 1
            }
        }
    }

    /// The signature of what the server has sent to be signed, in base64url; nil where OpenSSL cannot make it.
    func signature(of nonce: String) -> String? {
        guard let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count) else { return nil }
        defer { EVP_PKEY_free(key) }
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer { EVP_MD_CTX_free(context) }
        var (bytes, count) = ([UInt8](repeating: 0, count: 64), 64)
        let text = Array(nonce.utf8)
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &bytes, &count, text, text.count) == 1, count == 64
        else { return nil }
        var encoded = [UInt8](repeating: 0, count: 89)
        let length = EVP_EncodeBlock(&encoded, bytes, 64)
        return String(
            decoding: encoded.prefix(Int(length)).filter { $0 != 61 }.map { $0 == 43 ? 45 : $0 == 47 ? 95 : $0 },
            as: UTF8.self)
    }
}
