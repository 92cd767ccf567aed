// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Memory that grows to the largest size that was requested.
final class GrowingMemory {
    private(set) var byteCount = 0
    private var base: UnsafeMutableRawPointer?

    /// Larger memory is freed after each picture.
    static let mostKept = 48 << 20
    /// Larger memory is refused.
    static let most = 3 << 30

    deinit { free() }

    /// At least `count` bytes, aligned to 4096, with any content. The result of an earlier call is no longer valid.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func bytes(_ count: Int) throws -> UnsafeMutablePointer<UInt8> {
        if let base, count <= byteCount { return base.assumingMemoryBound(to: UInt8.self) }
        guard count <= Self.most else {
            // Rounded up, so that it is never the limit itself. Only the pictures of the stage can be that large.
            let needed = (count >> 20) + 1
            throw FrameHostError(
                .exhausted,
                what:
                    "encoding the picture needs \(needed) MiB of memory at once, but the limit is \(Self.most >> 20) MiB",
                remedy: "Name a stage with smaller pictures.")
        }
        free()
        let whole = (max(count, 1) + 65535) / 65536 * 65536
        let made = try AnonymousMemory().allocate(byteCount: whole, touching: false)
        (base, byteCount) = (made, whole)
        return made.assumingMemoryBound(to: UInt8.self)
    }

    func trim() { if byteCount > Self.mostKept { free() } }

    private func free() {
        if let base { AnonymousMemory().free(base, byteCount: byteCount) }
        (base, byteCount) = (nil, 0)
    }
}
