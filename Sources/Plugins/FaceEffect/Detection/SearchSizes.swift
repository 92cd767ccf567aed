// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How finely pictures are searched, and so how small a face may be.
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
    /// The smallest long side that a live chain searches.
    static let leastLiveSide = 320

    /// One search, on the copy that is also tracked.
    init(side: Int) { (trackingSide, copySide, sides) = (side, side, [side]) }

    /// YuNet with a fine search of `side`, no finer than twice the picture, and a coarse one where that would miss
    /// large faces.
    init(yunet side: Int, tracking: Int, _ format: VideoFormat) {
        let long = max(format.width, format.height)
        let fine = min(side, 2 * long)
        trackingSide = tracking
        copySide = min(fine, long)
        sides = fine > 2 * Self.coarseSide ? [Self.coarseSide, fine] : [fine]
    }

    /// The sizes that YuNet searches without `detectionSize`.
    ///
    /// - Parameter nanosecondsPerPixel: How long a search takes here, measured. Called only for a live chain with
    ///   privacy.
    static func yunet(_ format: VideoFormat, isPrivate: Bool, isLive: Bool, nanosecondsPerPixel: () throws -> Double)
        rethrows
        -> SearchSizes
    {
        guard isPrivate else { return SearchSizes(side: coarseSide) }
        let long = max(format.width, format.height)
        guard isLive else {
            let wanted = (Double(long) * yunetFace / wantedFace).rounded(.up)
            return SearchSizes(yunet: min(max(Int(wanted), coarseSide), mostSide), tracking: leastLiveSide, format)
        }
        // A third of a frame's duration: the stage waits for half of one, and the core also runs decoder and
        // encoder.
        let rate = format.frameRate.isZero ? 30 : format.frameRate.value
        let area = 1e9 / rate / 3 / max(try nanosecondsPerPixel(), 1)
        let aspect = Double(long) / Double(max(min(format.width, format.height), 1))
        let side = multiple(Int(min((area * aspect).squareRoot(), Double(mostSide))))
        return SearchSizes(
            yunet: min(max(side, leastLiveSide), max(long, leastLiveSide)), tracking: leastLiveSide, format)
    }

    /// Adds a search on a small picture: its pixels are means of many samples, and show faces that noise hides in
    /// the fine one.
    mutating func addSmallSearch() {
        if let first = sides.first, first >= Self.coarseSide { sides.insert(Self.leastLiveSide, at: 0) }
    }

    /// YuNet works on sides in steps of 32.
    private static func multiple(_ side: Int) -> Int { side / 32 * 32 }

    /// What YuNet's layers take, measured: 85 to 90 bytes for each pixel that is searched.
    func yunetBytes(_ format: VideoFormat) -> Int {
        let copy = SmallPicture.size(format, longSide: copySide)
        return searched(copyWidth: copy.width, copyHeight: copy.height).reduce(0) { $0 + $1.width * $1.height * 90 }
    }

    /// What searching costs for each frame, for the plan: measured, 100 ns a pixel with YuNet and 270 with a
    /// cascade.
    func cost(_ format: VideoFormat, isYuNet: Bool, every: Int) -> MediaTime {
        let copy = SmallPicture.size(format, longSide: copySide)
        let pixels = searched(copyWidth: copy.width, copyHeight: copy.height).reduce(0) { $0 + $1.width * $1.height }
        return MediaTime(seconds: Double(pixels) * (isYuNet ? 100 : 270) / 1e9 / Double(max(every, 1)))
    }

    /// Width of the smallest face that YuNet finds dependably, in pixels of the full picture.
    func smallestYuNetFace(_ format: VideoFormat) -> Int {
        let long = max(format.width, format.height)
        // A copy is never an enlargement; what is searched may be.
        let searched = sides.last.map { $0 == copySide ? min($0, long) : $0 } ?? long
        return Int((Self.yunetFace * Double(long) / Double(searched)).rounded(.up))
    }

    /// Upright sides of the pictures YuNet searches, for a copy of this size.
    func searched(copyWidth: Int, copyHeight: Int) -> [PictureSize] {
        sides.map { side in
            // Sides below 64 leave the network nothing after its last layer.
            let factor = max(
                Double(side) / Double(max(copyWidth, copyHeight)), 64 / Double(max(min(copyWidth, copyHeight), 1)))
            let isWhole = abs(factor - 1) < 1e-9 || (factor > 1 && side == copySide && min(copyWidth, copyHeight) >= 64)
            guard !isWhole else { return PictureSize(copyWidth, copyHeight) }
            func scaled(_ length: Int) -> Int { max(Int((Double(length) * factor).rounded()), 1) }
            return PictureSize(scaled(copyWidth), scaled(copyHeight))
        }
    }
}
