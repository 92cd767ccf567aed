// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// How a stage falls.
enum Way: String, OptionChoice {
    case none
    /// Writes to an address that is not there.
    case segv
    /// Reads behind the end of an array.
    case trap
    /// Calls abort(3).
    case abort
    /// Calls itself without end.
    case recurse
    /// Throws an error that is not a ``FrameHostError``.
    case plain
    /// Prints to standard output, by Swift's `print` and by write(2).
    case print
    /// Waits for ever.
    case hang
    /// Ends its process with status 3.
    case exit
    /// Posts more events than anybody reads.
    case flood
    /// Posts an event whose text begins as its id does.
    case event
}

/// A filter that falls on purpose, or speaks where it should not.
final class Fall: Filter {
    static let info = StageInfo(id: "fall", summary: "Falls on purpose.", input: .anyVideo, output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "How.") var way = Way.none
        @Option(help: "At which frame.", range: 0...1_000_000) var at = 0
        @Option(help: "When it is made instead.") var early = false
        @Option(help: "In start() instead.") var inStart = false
    }

    struct Plain: Error { var code: Int }

    var options: Options
    private let context: StageContext

    init(options: Options, context: StageContext) throws {
        self.options = options
        self.context = context
        if options.early { try fall() }
    }

    func start() throws { if options.inStart { try fall() } }

    func process(_ frame: inout Frame) throws -> Verdict {
        if frame.sequenceNumber == UInt64(options.at), !options.inStart { try fall() }
        return .forward
    }

    private func fall() throws {
        switch options.way {
        case .none: break
        case .segv: UnsafeMutablePointer<UInt8>(bitPattern: 8)!.pointee = 1
        case .trap: print([1, 2, 3][options.at + 1000])
        case .abort: Glibc.abort()
        case .recurse: print(Self.deeper(1))
        case .plain: throw Plain(code: 5)
        case .print:
            Swift.print("printed by a plugin")
            fflush(nil)
            let text = Array("written by a plugin\n".utf8)
            _ = write(STDOUT_FILENO, text, text.count)
        case .hang: while true { pause() }
        case .exit:
            let text = Array("the filter has had enough\n".utf8)
            _ = write(STDERR_FILENO, text, text.count)
            Glibc.exit(3)
        case .flood: for count in 0..<2000 { context.log("flood \(count)") }
        case .event: context.post("fell", text: "recording begins", details: ["deep": .number(3), "why": "on purpose"])
        }
    }

    @inline(never) @_optimize(none)
    private static func deeper(_ depth: Int) -> Int {
        var here = depth
        return withUnsafeMutablePointer(to: &here) { deeper($0.pointee + 1) } + here
    }
}
