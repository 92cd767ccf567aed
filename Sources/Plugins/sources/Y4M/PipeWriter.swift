// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The writing end of a pipe, or a file: waits for its reader, and checks in between whether it must stop.
///
/// Used by one thread at a time.
final class PipeWriter {
    enum End: Equatable {
        case written
        /// The run was stopped meanwhile.
        case stopped
        case readerGone
        /// errno.
        case failed(Int32)
    }

    private let descriptor: Int32
    /// Whether it was opened here, for writing without blocking.
    private let isOwn: Bool
    /// Whether bytes are written all at once. Otherwise they are written a page at a time, for which there is room when
    /// poll(2) says so.
    private let isWhole: Bool
    private let file: HeldFile?
    /// How long one wait for the reader lasts, so that a stop is noticed, milliseconds.
    static let wait: Int32 = 50
    private static let page = 4096

    /// [setup thread] Takes standard output.
    init() throws {
        let kept = StandardOutput.descriptor
        guard isatty(kept) == 0 else { throw PipeFault.outputIsTerminal() }
        // Closed, or open only for reading: StandardOutput.fillGaps.
        let flags = fcntl(kept, F_GETFL)
        guard flags >= 0, flags & O_ACCMODE != O_RDONLY else { throw PipeFault.outputIsClosed() }
        file = nil
        var status = stat()
        fstat(kept, &status)
        // The flag on an inherited descriptor would apply to all processes that share it.
        let own =
            status.st_mode & S_IFMT == S_IFIFO
            ? SystemCall.retrying { open("/proc/self/fd/\(kept)", O_WRONLY | O_NONBLOCK | O_CLOEXEC) } : -1
        isOwn = own >= 0
        isWhole = own >= 0 || status.st_mode & S_IFMT == S_IFREG
        descriptor = own >= 0 ? own : kept
        if isOwn { PipeRoom.widen(descriptor) }
    }

    /// [setup thread] Opens a named pipe, or a file, which is replaced.
    ///
    /// - Parameter isEnded: Ends the wait for a pipe's reader.
    /// - Throws: ``FrameHostError``, `.stopped` where it was ended.
    init(path: String, _ files: RunFiles, as stage: String, unless isEnded: () -> Bool = { false }) throws {
        do throws(FileRefusal) {
            file = try files.rewrite(path, as: stage, patience: 3_000_000_000, unless: isEnded)
        } catch {
            guard error != .noReader || !isEnded() else { throw PipeFault.endedWithoutReader(path) }
            throw error.fault(path)
        }
        descriptor = file!.descriptor
        isOwn = false
        isWhole = true
        if !file!.isRegular {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            PipeRoom.widen(descriptor)
        }
    }

    deinit { if isOwn { Glibc.close(descriptor) } }

    /// Writes all bytes.
    func write(_ bytes: UnsafeRawBufferPointer, unless isStopped: () -> Bool) -> End {
        var done = 0
        while done < bytes.count {
            if isStopped() { return .stopped }
            var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            let ready = poll(&waiting, 1, Self.wait)
            if ready == 0 || (ready < 0 && errno == EINTR) { continue }
            guard ready > 0 else { return .failed(errno) }
            let count = isWhole ? bytes.count - done : min(bytes.count - done, Self.page)
            let written = Glibc.write(descriptor, bytes.baseAddress! + done, count)
            if written > 0 {
                done += written
                continue
            }
            switch errno {
            case EINTR, EAGAIN: continue
            case EPIPE, ECONNRESET: return .readerGone
            default: return .failed(errno)
            }
        }
        return .written
    }

    /// After the last write: waits at most half a second until the reader has emptied the pipe, in order to notice
    /// a reader that goes without the rest.
    func finish(unless isStopped: () -> Bool) -> End {
        var waited: Int32 = 0
        while waited < Self.patience, !isStopped() {
            // A descriptor that is not a pipe cannot tell, and holds no bytes in between.
            guard let unread = PipeRoom.unread(descriptor), unread > 0 else { return .written }
            // poll(2) always reports that the last reader has gone.
            var waiting = pollfd(fd: descriptor, events: 0, revents: 0)
            let ready = poll(&waiting, 1, Self.look)
            if ready > 0, waiting.revents & Int16(POLLERR) != 0 {
                // The reader may have taken the rest meanwhile.
                return PipeRoom.unread(descriptor) == 0 ? .written : .readerGone
            }
            if ready < 0, errno != EINTR { return .failed(errno) }
            waited += Self.look
        }
        return isStopped() ? .stopped : .written
    }

    /// Milliseconds: the whole wait, and the time between two looks into the pipe.
    private static let patience: Int32 = 500
    private static let look: Int32 = 5

    /// Ends a file; once.
    func close() -> Int32 { file?.close() ?? 0 }
}
