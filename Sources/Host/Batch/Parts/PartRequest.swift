// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// The part of its file that a worker makes, or the join of parts: the value of the hidden option `--part`.
enum PartRequest: ExpressibleByArgument {
    /// `60000000000-120000000000`, nanoseconds; without a first number from the beginning, without a second to the end.
    case part(TimelinePart)
    /// `join:10:/FOLDER`: joins this many parts, which are in the folder.
    case join(count: Int, folder: String)

    static let option = "part"
    static let mostParts = 100_000

    init?(argument: String) {
        if argument.hasPrefix("join:") {
            let words = argument.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count == 3, let count = Int(words[1]), (1...Self.mostParts).contains(count) else { return nil }
            self = .join(count: count, folder: String(words[2]))
            return
        }
        let ends = argument.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let (begin, end) = (Int64(ends[0]), Int64(ends[1]))
        guard begin != nil || ends[0].isEmpty, end != nil || ends[1].isEmpty, begin ?? 0 >= 0,
            MediaTime.range.contains(end ?? 0), (begin ?? 0) < end ?? .max
        else { return nil }
        self = .part(
            TimelinePart(
                begin: MediaTime(nanoseconds: begin ?? MediaTime.range.lowerBound),
                end: end.map { MediaTime(nanoseconds: $0) }))
    }

    /// The option's value for part `index` of `count`.
    ///
    /// - Parameter seconds: The length of each part. The last one goes to the end of the file.
    static func text(part index: Int, of count: Int, seconds: Double) -> String {
        let length = MediaTime(seconds: seconds).nanoseconds
        return (index == 0 ? "" : "\(Int64(index) * length)") + "-"
            + (index == count - 1 ? "" : "\(Int64(index + 1) * length)")
    }

    static func text(join count: Int, in folder: String) -> String { "join:\(count):\(folder)" }

    /// How many parts a file of `length` seconds has; 1 for one that is made as a whole.
    static func count(_ length: Double, seconds: Double) -> Int {
        min(max(Int(min(length / seconds, 1e9)), 1), mostParts)
    }

    /// The name of a part's file in the folder of parts.
    static func name(_ index: Int) -> String { "\(index + 1).part" }

    /// [control thread] The chain that makes the part, or that joins the parts.
    func applied(to request: ChainRequest, _ registry: PluginRegistry) throws -> ChainRequest {
        let chain = PartChain(registry: registry)
        switch self {
        case .part(let part): return try chain.part(part, of: request)
        case .join(let count, let folder):
            let parts = (0..<count).map { "\(folder)/\(Self.name($0))" }
            let output = getenv("output").map { String(cString: $0) } ?? ""
            return try chain.join(parts, into: output, of: request)
        }
    }
}
