// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Graphviz's `dot`, run as a program: it lays out a graph and draws it as SVG.
enum Graphviz {
    /// Seconds after which `dot` is ended. A chain's graph takes much less than one.
    static let patience = 60.0
    /// The most bytes of a drawing.
    private static let mostBytes = 256 << 20

    /// - Throws: ``FrameHostError``: there is no `dot`, or it does not draw this.
    static func svg(_ dot: String) throws -> [UInt8] {
        let (input, output, errors) = (try pipe(), try pipe(), try pipe())
        let child = try start(input, output, errors)
        for file in [input.read, output.write, errors.write] { Glibc.close(file) }
        // Our ends must not block: ``talk(_:_:_:_:)`` waits for all of them at once.
        for file in [input.write, output.read, errors.read] {
            _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK)
        }
        let (drawing, words, isCut) = talk(Array(dot.utf8), input.write, output.read, errors.read)
        if isCut { kill(child, SIGKILL) }
        var status: Int32 = 0
        _ = SystemCall.retrying { waitpid(child, &status, 0) }
        if isCut {
            throw FrameHostError(
                .exhausted, place: "dot",
                what: drawing.count > mostBytes
                    ? "was stopped, because its drawing became larger than \(mostBytes >> 20) MiB"
                    : "was stopped, because it had not drawn the graph after \(Int(patience)) s",
                remedy: "Print the graph with --format dot, and draw it with another program of Graphviz, such as sfdp."
            )
        }
        guard status == 0, !drawing.isEmpty else {
            throw FrameHostError(
                .callFailed, place: "dot", what: "did not draw the graph (\(ending(status)))",
                remedy: "Print the input of dot with `framehost graph … --format dot`, and check it.",
                cause: String(decoding: words.prefix(2000), as: UTF8.self))
        }
        return drawing
    }

    private static func ending(_ status: Int32) -> String {
        let signal = status & 0x7f
        return signal == 0 ? "status \(status >> 8 & 0xff)" : "signal \(signal)"
    }

    // MARK: The program

    private static func pipe() throws -> PipeEnds {
        let ends = PipeEnds()
        guard ends.isOpen else {
            throw FrameHostError(
                .exhausted, place: "dot",
                what: "no pipe to this program can be made: \(String(cString: strerror(errno)))",
                remedy: "Close other programs, or raise the limit of open files (ulimit -n).")
        }
        return ends
    }

    private static func start(_ input: PipeEnds, _ output: PipeEnds, _ errors: PipeEnds) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, file) in [input.read, output.write, errors.write].enumerated() {
            posix_spawn_file_actions_adddup2(&actions, file, Int32(number))
        }
        Descriptors.close(from: STDERR_FILENO + 1, in: &actions)
        // Signals that this program ignores would be ignored in `dot` too.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        let arguments: [UnsafeMutablePointer<CChar>?] = [strdup("dot"), strdup("-Tsvg"), nil]
        defer { for argument in arguments { free(argument) } }
        var child = pid_t()
        let result = posix_spawnp(&child, "dot", &actions, &attributes, arguments, environ)
        guard result == 0 else {
            for pipe in [input, output, errors] { pipe.close() }
            throw FrameHostError(
                .unavailable, place: "dot",
                what: result == ENOENT
                    ? "is not installed, and SVG needs it"
                    : "cannot be run: \(String(cString: strerror(result)))",
                remedy: (result == ENOENT
                    ? "Install the package graphviz"
                    : "Check the program 'dot' and the limit of processes (ulimit -u)")
                    + ", or print the graph with --format dot.")
        }
        return child
    }

    /// Writes to the program and reads from it at the same time until it closes its ends, then closes ours.
    ///
    /// - Returns: What it drew and said, and whether it was still at it when its time or ``mostBytes`` were used up.
    private static func talk(
        _ text: [UInt8], _ input: Int32, _ output: Int32, _ errors: Int32
    ) -> (drawing: [UInt8], words: [UInt8], isCut: Bool) {
        var rest = text[...]
        var files = [input, output, errors]
        var said: [[UInt8]] = [[], [], []]
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let deadline = MonotonicTime.seconds() + patience
        func close(_ index: Int) {
            Glibc.close(files[index])
            files[index] = -1
        }
        while files[1] >= 0 || files[2] >= 0 {
            // poll(2) ignores descriptors less than 0.
            var polls = files.enumerated().map {
                pollfd(fd: $1, events: Int16($0 == 0 ? POLLOUT : POLLIN), revents: 0)
            }
            let left = deadline - MonotonicTime.seconds()
            guard left > 0, said[1].count <= mostBytes else { break }
            guard poll(&polls, nfds_t(polls.count), Int32(left * 1000) + 1) > 0 else { continue }
            if polls[0].revents != 0 {
                let count = rest.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
                if count > 0 { rest = rest.dropFirst(count) }
                // The program reports on its other outputs why it does not read.
                if rest.isEmpty || (count < 0 && errno != EAGAIN && errno != EINTR) { close(0) }
            }
            for index in 1...2 where polls[index].revents != 0 {
                let count = read(files[index], &buffer, buffer.count)
                if count > 0 {
                    if said[index].count <= mostBytes { said[index] += buffer[..<count] }
                } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                    close(index)
                }
            }
        }
        let isCut = files[1] >= 0 || files[2] >= 0
        for index in files.indices where files[index] >= 0 { close(index) }
        return (said[1], said[2], isCut)
    }
}
