// SPDX-License-Identifier: Apache-2.0

internal import CStageLink
import Glibc

/// Memory that two processes see: a memfd of a size that nobody can change (memfd_create(2), F_SEAL_SHRINK, F_SEAL_GROW).
///
/// `@unchecked Sendable`: its properties never change; who writes what is up to the protocol.
final class SharedBlock: @unchecked Sendable {
    let file: Int32
    let base: UnsafeMutableRawPointer
    let byteCount: Int

    /// New memory, all zero. `name` is shown in /proc/PID/maps.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    convenience init(_ name: String, byteCount: Int) throws {
        let file = fh_memory(name, UInt64(byteCount))
        guard file >= 0 else { throw Self.refusal(byteCount, errno) }
        try self.init(file, byteCount: byteCount)
    }

    /// Memory of a descriptor, which the block takes over.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(_ file: Int32, byteCount: Int) throws {
        // Given to the process now, so that no call meets a page fault.
        guard
            let base = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED | Self.populate, file, 0),
            base != MAP_FAILED
        else {
            let code = errno
            close(file)
            throw Self.refusal(byteCount, code)
        }
        (self.file, self.base, self.byteCount) = (file, base, byteCount)
    }

    /// `MAP_POPULATE` of mmap(2).
    private static let populate: Int32 = 0x8000

    private static func refusal(_ byteCount: Int, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .exhausted,
            what: "\(byteCount) bytes of memory cannot be shared: \(String(cString: strerror(code)))",
            remedy: "Raise the limit of memory or of open files, or isolate fewer stages.", reason: .of(errno: code))
    }

    deinit {
        munmap(base, byteCount)
        close(file)
    }
}

/// The frames of an isolated stage in its own process: memory that the host has made.
struct MappedMemory: FrameMemory {
    let block: SharedBlock

    func allocate(byteCount: Int, touching: Bool) throws -> UnsafeMutableRawPointer {
        guard byteCount <= block.byteCount else {
            throw FrameHostError(.broken, what: "the host gives too little memory for the frames")
        }
        return block.base
    }

    func free(_ base: UnsafeMutableRawPointer, byteCount: Int) {}
}
