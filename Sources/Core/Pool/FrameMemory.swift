// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where the memory of a pool comes from: anonymous pages today; later also a memfd, a driver's mappings or a
/// library's buffers.
public protocol FrameMemory: Sendable {
    /// One block of at least `byteCount` bytes, aligned to 4096, readable and writable. [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func allocate(byteCount: Int, touching: Bool) throws -> UnsafeMutableRawPointer
    /// Gives a block back. [any thread, once nobody holds a lease of it]
    func free(_ base: UnsafeMutableRawPointer, byteCount: Int)
}

/// Anonymous private pages (mmap(2)).
public struct AnonymousMemory: FrameMemory {
    /// Makes one; nothing is mapped yet.
    public init() {}

    /// Maps private pages.
    ///
    /// Where `touching` is true, every page gets its memory now, so that no frame thread meets a page fault. It
    /// also gets large pages where the system has them. Without them the processor looks up each 4096 bytes, and
    /// work on whole pictures is slower by a fifth (docs/development.md). Large pages take no more memory, since
    /// only pages that lie inside the block are large.
    public func allocate(byteCount: Int, touching: Bool) throws -> UnsafeMutableRawPointer {
        let count = max(byteCount, 1)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | (touching ? 0 : MAP_NORESERVE)
        guard let base = mmap(nil, count, PROT_READ | PROT_WRITE, flags, -1, 0), base != MAP_FAILED else {
            throw Self.refusal(byteCount, errno)
        }
        if touching {
            do { try Self.touch(base, byteCount: count, isNew: true) } catch {
                munmap(base, count)
                throw error
            }
        }
        return base
    }

    private static func refusal(_ byteCount: Int, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .exhausted, what: "\(byteCount) bytes of memory cannot be allocated: \(String(cString: strerror(code)))",
            remedy: "Use smaller pictures, shorter queues or fewer stages that hold frames.",
            reason: .of(errno: code))
    }

    /// `MADV_HUGEPAGE` and `MADV_POPULATE_WRITE` of madvise(2), which C libraries older than 2022 do not know.
    private static let (largePages, populate): (Int32, Int32) = (14, 23)

    /// Gives pages their memory now, large pages if the system has them. Changes no byte of pages that are in use.
    ///
    /// Linux before 5.14 gives a page its memory only when something is stored there. Such a kernel does so here if the
    /// pages are new, and otherwise when a stage first writes there.
    ///
    /// - Parameter isNew: Whether nothing has been stored in the pages yet.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    static func touch(_ base: UnsafeMutableRawPointer, byteCount: Int, isNew: Bool) throws {
        // A kernel without large pages refuses this; then normal pages are used.
        _ = madvise(base, byteCount, largePages)
        guard madvise(base, byteCount, populate) != 0 else { return }
        if errno == ENOMEM { throw refusal(byteCount, ENOMEM) }
        guard isNew else { return }
        for offset in stride(from: 0, to: byteCount, by: 4096) {
            base.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
        }
    }

    public func free(_ base: UnsafeMutableRawPointer, byteCount: Int) { munmap(base, max(byteCount, 1)) }
}
