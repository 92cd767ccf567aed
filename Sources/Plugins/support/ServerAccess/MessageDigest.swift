// SPDX-License-Identifier: Apache-2.0

internal import CNettle

/// The hashes of digest authentication, as nettle computes them.
public enum MessageDigest {
    /// RFC 1321. Broken as a signature, but digest authentication requires it (RFC 2069, RFC 2617).
    public static func md5(_ message: [UInt8]) -> [UInt8] {
        var context = md5_ctx()
        var digest = [UInt8](repeating: 0, count: Int(MD5_DIGEST_SIZE))
        nettle_md5_init(&context)
        nettle_md5_update(&context, message.count, message)
        nettle_md5_digest(&context, digest.count, &digest)
        return digest
    }

    /// FIPS 180-4, 6.1. Broken as a signature, but the UsernameToken profile of WS-Security requires it.
    public static func sha1(_ message: [UInt8]) -> [UInt8] {
        var context = sha1_ctx()
        var digest = [UInt8](repeating: 0, count: Int(SHA1_DIGEST_SIZE))
        nettle_sha1_init(&context)
        nettle_sha1_update(&context, message.count, message)
        nettle_sha1_digest(&context, digest.count, &digest)
        return digest
    }

    /// FIPS 180-4, 6.2; for `algorithm=SHA-256` (RFC 7616).
    public static func sha256(_ message: [UInt8]) -> [UInt8] {
        var context = sha256_ctx()
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_SIZE))
        nettle_sha256_init(&context)
        nettle_sha256_update(&context, message.count, message)
        nettle_sha256_digest(&context, digest.count, &digest)
        return digest
    }
}
