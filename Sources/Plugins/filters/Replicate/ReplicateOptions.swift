// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct ReplicateOptions: StageOptions {
    @Option(
        help:
            "Cells of the picture, as columns x rows; \"1x1\" is the whole picture. Copies fill the cells row by row, then start over."
    )
    var grid = Grid(columns: 2, rows: 2)
    @Option(help: "Number of copies. Default: one for each cell.", range: 1...mostCopies) var copies: Int? = nil
    @Option(help: "Size of the result. Default: the input's size.", unit: "px") var size: PictureSize? = nil
    @Option(help: "Colour where there is no copy.", live: true) var background = RGBColor(red: 0, green: 0, blue: 0)
    @Option(
        help:
            "Values of every copy before 'step' is applied: x and y (from the middle of its cell), scale, rotate, mirror, delay (frames), gain, tint, hue, opacity.",
        live: true)
    var first = CopyChange()
    @Option(
        help: "Change from each copy to the next, with the same keys. Positions also rotate and scale, as in a spiral.",
        live: true)
    var step = CopyChange()
    @Option(help: "For each copy in turn, values that replace those in 'first'.", live: true) var each: [CopyChange] =
        []

    func validate() throws(OptionFault) {
        let count = copyCount
        guard each.count <= count else {
            let surplus = each.count - count
            throw OptionFault(
                "'each' has \(each.count == 1 ? "1 entry" : "\(each.count) entries"), but there \(count == 1 ? "is 1 copy" : "are \(count) copies")",
                remedy: "Remove \(surplus == 1 ? "1 entry" : "\(surplus) entries") from 'each'"
                    + (each.count > Self.mostCopies ? "." : ", or set 'copies' to \(each.count) in the chain file."),
                options: ["each"])
        }
        guard mostDelay <= Self.mostDelay else {
            throw OptionFault(
                "a copy would be \(mostDelay) frames late, but a delay must be at most \(Self.mostDelay) frames",
                remedy: "Lower 'delay' in 'first', 'step' or 'each', or set fewer 'copies' in the chain file.",
                options: ["step", "each", "first", "copies"])
        }
    }

    /// The largest number of cells in a grid.
    static let mostCopies = 64

    /// Longest delay in frames: ten seconds at 60 a second.
    static let mostDelay = 600

    var copyCount: Int { copies ?? grid.columns * grid.rows }

    /// The longest delay of a copy, in frames.
    var mostDelay: Int { (0..<copyCount).map { delay(of: $0) }.max() ?? 0 }

    func delay(of copy: Int) -> Int {
        let own = copy < each.count ? each[copy].delay : nil
        return (own ?? first.delay ?? 0) + copy * (step.delay ?? 0)
    }
}

/// Columns and rows, written `"4x4"`.
struct Grid: OptionValue {
    var columns: Int
    var rows: Int

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Grid {
        let parts = node.asString?.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) } ?? []
        guard parts.count == 2, let columns = parts[0], let rows = parts[1], (1...64).contains(columns),
            (1...64).contains(rows),
            columns * rows <= 64
        else {
            throw OptionFault(
                "\(node.text()) must be a grid of 1 to 64 cells", remedy: "Write columns and rows, such as \"4x4\"")
        }
        return Grid(columns: columns, rows: rows)
    }
    var optionJSON: JSONNode { .string("\(columns)x\(rows)") }
    static var optionTypeName: String { "grid" }
    static var optionSchema: JSONNode { ["type": "string", "pattern": "^[1-9][0-9]?x[1-9][0-9]?$"] }
}
