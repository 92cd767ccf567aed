// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// How finely pictures are searched, and so how small a face may be. All sides are those of square pixels.
struct SearchSizes: Equatable {
    /// Long side of the copy that flow and cascades work on.
    var trackingSide: Int
    /// Long side of the copy that the detector is handed.
    var copySide: Int
    /// Long sides of what it searches, ascending; one that is larger than the copy is an enlargement of it.
    var sides: [Int]

    /// YuNet finds at least 95 % of the faces that are this wide in the picture it searches (docs/face-effect.md,
    /// "Small faces").
    static let yunetFace = 12.0
    /// The width from which a chain without a live source should find faces with privacy, pixels.
    static let wantedFace = 12.0
    /// A search of this size takes some 330 MB and the better part of a second.
    static let mostSide = 2560
    /// The long side that finds large faces; the boxes of ``YuNetFit`` were fitted at this size.
    static let coarseSide = 480
    /// Long side of the copy on which faces are followed with privacy, and of the small search.
    static let smallSide = 320
    /// From one size of a live chain's search to the next smaller one.
    private static let pace = 0.8

    /// One search, on the copy that is also tracked.
    init(side: Int) { (trackingSide, copySide, sides) = (side, side, [side]) }

    /// YuNet with a fine search of `side`, no finer than twice the picture, and a coarse one where that would miss
    /// large faces.
    init(yunet side: Int, tracking: Int, _ format: VideoFormat) {
        let long = format.squareLong
        let fine = min(side, 2 * long)
        trackingSide = tracking
        copySide = min(fine, long)
        sides = fine > 2 * Self.coarseSide ? [Self.coarseSide, fine] : [fine]
    }

    /// The sizes that YuNet searches without `detectionSize`, the first of which it begins with. A live chain with privacy
    /// has several, each smaller than the one before: ``SearchPace`` chooses between them.
    ///
    /// - Parameters:
    ///   - least: The smallest long side that a live chain searches.
    ///   - nanosecondsPerPixel: How long a search takes here, measured. Called only for a live chain with privacy.
    static func yunet(
        _ format: VideoFormat, isPrivate: Bool, isLive: Bool, least: Int, nanosecondsPerPixel: () throws -> Double
    ) rethrows -> [SearchSizes] {
        guard isPrivate else { return [SearchSizes(side: coarseSide)] }
        let long = format.squareLong
        guard isLive else {
            let wanted = (Double(long) * yunetFace / wantedFace).rounded(.up)
            return [SearchSizes(yunet: min(max(Int(wanted), coarseSide), mostSide), tracking: smallSide, format)]
        }
        // A third of a frame's duration: the stage waits for half of one, and the core also runs decoder and
        // encoder.
        let rate = format.frameRate.isZero ? 30 : format.frameRate.value
        let area = 1e9 / rate / 3 / max(try nanosecondsPerPixel(), 1)
        let square = format.squareSides
        let aspect = max(square.width, square.height) / max(min(square.width, square.height), 1)
        var side = min(
            max(multiple(Int(min((area * aspect).squareRoot(), Double(mostSide)))), least), max(long, least))
        var all = [SearchSizes(yunet: side, tracking: smallSide, format)]
        while side > least {
            side = max(min(multiple(Int(Double(side) * pace)), side - 32), least)
            all.append(SearchSizes(yunet: side, tracking: smallSide, format))
        }
        return all
    }

    /// Adds a search on a small picture: its pixels are means of many samples, and show faces that noise hides in
    /// the fine one.
    mutating func addSmallSearch() {
        if let first = sides.first, first >= Self.coarseSide { sides.insert(Self.smallSide, at: 0) }
    }

    /// YuNet works on sides in steps of 32.
    private static func multiple(_ side: Int) -> Int { side / 32 * 32 }

    /// What YuNet's layers take, measured: 85 to 90 bytes for each pixel that is searched.
    func yunetBytes(_ format: VideoFormat) -> Int { pixels(format) * 90 }

    /// Pixels that all searches of a picture have together.
    func pixels(_ format: VideoFormat) -> Int { searched(format).reduce(0) { $0 + $1.width * $1.height } }

    /// What searching costs for each frame, for the plan: measured, 100 ns a pixel with YuNet and 270 with a
    /// cascade.
    func cost(_ format: VideoFormat, isYuNet: Bool, every: Int) -> MediaTime {
        MediaTime(seconds: Double(pixels(format)) * (isYuNet ? 100 : 270) / 1e9 / Double(max(every, 1)))
    }

    /// Width of the smallest face that YuNet finds dependably, in pixels of the full picture.
    func smallestYuNetFace(_ format: VideoFormat) -> Int {
        let long = format.squareLong
        // A copy is never an enlargement; what is searched may be.
        let searched = sides.last.map { $0 == copySide ? min($0, long) : $0 } ?? long
        return Int((Self.yunetFace * Double(long) / Double(searched)).rounded(.up))
    }

    /// Sides of the pictures that are searched, upright, in square pixels.
    func searched(_ format: VideoFormat, _ orientation: Orientation) -> [PictureSize] {
        searched(format).map { $0.turned(by: orientation) }
    }

    /// Sides of the pictures that are searched, as stored, in square pixels.
    func searched(_ format: VideoFormat) -> [PictureSize] {
        let square = format.squareSides
        let reduction = min(Double(copySide) / max(square.width, square.height), 1)
        func whole(_ length: Double) -> Int { max(Int(length.rounded()), 1) }
        let (width, height) = (whole(square.width * reduction), whole(square.height * reduction))
        return sides.map { side in
            let (short, long) = (Double(min(width, height)), Double(max(width, height)))
            // Sides below 64 leave the network nothing after its last layer. A picture that is too thin for a face of the
            // least size is not enlarged for that, but only made wider: an enlarged line would be the largest of all.
            let factor = max(Double(side) / long, short < Self.yunetFace ? 0 : 64 / short)
            let isWhole = (abs(factor - 1) < 1e-9 || (factor > 1 && side == copySide)) && short >= 64
            guard !isWhole else { return PictureSize(width, height) }
            return PictureSize(max(whole(Double(width) * factor), 64), max(whole(Double(height) * factor), 64))
        }
    }
}
