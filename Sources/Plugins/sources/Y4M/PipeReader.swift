// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// The reading end of a pipe, or a file: waits for bytes, but only for a short time.
///
/// Used by one thread at a time.
final class PipeReader {
    enum Step: Equatable {
        /// How many bytes came.
        case bytes(Int)
        /// No bytes came in time.
        case nothing
        case ended
        /// errno.
        case failed(Int32)
    }

    private let descriptor: Int32
    private let isStandardInput: Bool
    /// The context of the reading stage. Its figures exclude the time that it waits here.
    private let context: StageContext?
    private var buffer: UnsafeMutableRawBufferPointer
    private var begin = 0
    private var end = 0
    /// How many bytes are read at once where few are needed.
    private static let bufferBytes = 1 << 16
    /// How long one wait for bytes lasts, so that a stop is noticed, milliseconds.
    static let wait: Int32 = 50
    /// Whether a stage reads standard input already. Only one may, since two would each get parts of the stream.
    private static let isStandardInputTaken = Atomic<Bool>(false)

    /// [control thread] Opens a named pipe or file, or takes standard input.
    ///
    /// - Parameter path: nil: standard input.
    init(_ path: String?, of context: StageContext? = nil) throws {
        self.context = context
        isStandardInput = path == nil
        buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
        if let path {
            descriptor = SystemCall.retrying { open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) }
            guard descriptor >= 0 else { throw PipeFault.unreadable(path, errno) }
            var status = stat()
            fstat(descriptor, &status)
            let kind = status.st_mode & S_IFMT
            guard kind == S_IFREG || kind == S_IFIFO else {
                Glibc.close(descriptor)
                throw PipeFault.noPipe(path, isFolder: kind == S_IFDIR)
            }
        } else {
            descriptor = STDIN_FILENO
            guard isatty(STDIN_FILENO) == 0 else { throw PipeFault.inputIsTerminal() }
            let (isFree, _) = Self.isStandardInputTaken.compareExchange(
                expected: false, desired: true, ordering: .acquiringAndReleasing)
            guard isFree else { throw PipeFault.inputIsTaken() }
        }
        // A larger buffer means fewer switches between the two programs. The system may refuse it.
        PipeRoom.widen(descriptor)
        buffer = .allocate(byteCount: Self.bufferBytes, alignment: 16)
    }

    deinit {
        // After an init that throws there is no buffer to free.
        guard buffer.baseAddress != nil else { return }
        buffer.deallocate()
        if isStandardInput {
            Self.isStandardInputTaken.store(false, ordering: .releasing)
        } else {
            Glibc.close(descriptor)
        }
    }

    /// Reads up to `count` bytes, first those that were buffered before.
    func read(into target: UnsafeMutableRawPointer, _ count: Int) -> Step {
        if begin == end {
            guard count < buffer.count else { return readOnce(into: target, count) }
            let step = readOnce(into: buffer.baseAddress!, buffer.count)
            guard case .bytes(let got) = step else { return step }
            (begin, end) = (0, got)
        }
        let taken = min(count, end - begin)
        target.copyMemory(from: buffer.baseAddress! + begin, byteCount: taken)
        begin += taken
        return .bytes(taken)
    }

    private func readOnce(into target: UnsafeMutableRawPointer, _ count: Int) -> Step {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let ready = context?.waiting { poll(&waiting, 1, Self.wait) } ?? poll(&waiting, 1, Self.wait)
        if ready == 0 { return .nothing }
        if ready < 0 { return errno == EINTR ? .nothing : .failed(errno) }
        let got = Glibc.read(descriptor, target, count)
        if got > 0 { return .bytes(got) }
        if got == 0 { return .ended }
        // EAGAIN: another process has read the bytes.
        return errno == EINTR || errno == EAGAIN ? .nothing : .failed(errno)
    }

    enum Line: Equatable {
        case whole
        /// The line has more bytes than it may have.
        case tooLong
        /// The rest has not come in time.
        case nothing
        /// The stream ended before the line feed.
        case ended
        /// errno.
        case failed(Int32)
    }

    /// Adds to `line` up to a line feed, which is taken too.
    ///
    /// - Parameter most: Bytes that a line may have beside its line feed.
    func readLine(into line: inout [UInt8], atMost most: Int) -> Line {
        while true {
            var byte: UInt8 = 0
            switch read(into: &byte, 1) {
            case .bytes: break
            case .nothing: return .nothing
            case .ended: return .ended
            case .failed(let code): return .failed(code)
            }
            if byte == 10 { return .whole }
            guard line.count < most else { return .tooLong }
            line.append(byte)
        }
    }
}
