import Glibc

/// Where the memory of a pool comes from: the heap today; a memfd, a driver's mappings or a library's buffers beside it
/// later.
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
    public init() {}

    /// - Parameter touching: True gives every page its memory now, so that no frame thread meets a page fault.
    public func allocate(byteCount: Int, touching: Bool) throws -> UnsafeMutableRawPointer {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | (touching ? MAP_POPULATE : MAP_NORESERVE)
        guard let base = mmap(nil, max(byteCount, 1), PROT_READ | PROT_WRITE, flags, -1, 0), base != MAP_FAILED else {
            throw FrameHostError(
                .exhausted, what: "no memory for \(byteCount) bytes: \(String(cString: strerror(errno)))",
                remedy: "Use smaller pictures, shorter queues or fewer stages that hold.")
        }
        return base
    }

    public func free(_ base: UnsafeMutableRawPointer, byteCount: Int) { munmap(base, max(byteCount, 1)) }
}
