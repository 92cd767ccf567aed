// SPDX-License-Identifier: Apache-2.0

/// Detects cuts: pictures whose parts differ from those of the picture before by more than motion explains.
///
/// With privacy a cut ends what covers faces before they are found, so it must be a change of the whole picture: light
/// that changes, in all of it or in a part, is none.
struct CutWatch {
    private static let columns = 16
    private static let rows = 12
    /// The limit for the mean difference of the parts, in steps of luma, without the overall change of light.
    ///
    /// Measured: 15 and 19 at the two cuts between people before the same wall, at most 6.6 with quick motion.
    static let limit = 11.0

    private var last = [Double](repeating: 0, count: columns * rows)
    private var means = [Double](repeating: 0, count: columns * rows)
    /// A part has changed where its luma did by more than this, with and without the overall change of light.
    private static let leastChange = 6.0
    /// The least share of changed parts that is a change of the whole picture. The bars of films and the sky stay as they
    /// are in most cuts.
    private static let leastShare = 0.6

    private var hasLast = false
    private var lastAverage = 0.0
    /// Whether other light counts as the same scene.
    private let knowsLight: Bool

    init(knowsLight: Bool = false) { self.knowsLight = knowsLight }

    /// [stage thread] True when `plane` begins a new scene; also for the first picture.
    mutating func isCut(_ plane: GrayPlane) -> Bool {
        var sum = 0.0
        for row in 0..<Self.rows {
            let top = row * plane.height / Self.rows
            let bottom = max((row + 1) * plane.height / Self.rows, top + 1)
            for column in 0..<Self.columns {
                let left = column * plane.width / Self.columns
                let right = max((column + 1) * plane.width / Self.columns, left + 1)
                var part = 0
                for y in top..<min(bottom, plane.height) {
                    let line = plane.base + y * plane.width
                    for x in left..<min(right, plane.width) { part += Int(line[x]) }
                }
                let mean = Double(part) / Double((bottom - top) * (right - left))
                means[row * Self.columns + column] = mean
                sum += mean
            }
        }
        let count = Double(means.count)
        let average = sum / count
        for index in means.indices { means[index] -= average }
        var difference = 0.0
        var changed = 0
        for index in means.indices {
            let own = means[index] - last[index]
            difference += abs(own)
            if min(abs(own), abs(own + average - lastAverage)) > Self.leastChange { changed += 1 }
        }
        let isCut =
            difference / count > Self.limit
            && !(knowsLight && (Double(changed) < Self.leastShare * count || isOtherLight))
        swap(&means, &last)
        defer { (hasLast, lastAverage) = (true, average) }
        return !hasLast || isCut
    }

    /// Whether `means` are about the same as `last`, with another contrast.
    ///
    /// Measured: the correlation is 0.80 and 0.85 at the two cuts between people before the same wall, where the
    /// contrast stays; 0.84 and more where a lamp goes out within two frames.
    private var isOtherLight: Bool {
        var (own, other, both) = (0.0, 0.0, 0.0)
        for index in means.indices {
            own += means[index] * means[index]
            other += last[index] * last[index]
            both += means[index] * last[index]
        }
        guard own > 0, other > 0 else { return false }
        let correlation = both / (own * other).squareRoot()
        let contrast = (max(own, other) / min(own, other)).squareRoot()
        return correlation > 0.95 || (correlation > 0.8 && contrast > 1.5)
    }
}
