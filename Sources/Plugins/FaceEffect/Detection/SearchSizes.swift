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

    /// YuNet finds faces of this width in the picture it searches, .95 of them and more (docs/face-effect.md, "Small
    /// faces").
    static let yunetFace = 12.0
    /// What a chain without a live source finds with privacy, pixels.
    static let wantedFace = 12.0
    /// A search of this size takes some 330 MB and the better part of a second.
    static let mostSide = 2560
    /// The long side that finds large faces; the boxes of ``YuNetFit`` were fitted here.
    static let coarseSide = 480
    /// What a live chain searches at least.
    static let leastLiveSide = 320

    /// One search, on the copy that is tracked too.
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

    /// What YuNet is given without `detectionSize`.
    ///
    /// - Parameter nanosecondsPerPixel: What a search takes here, measured; asked for in a live chain alone.
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
        // A third of a frame's duration: half of one is waited for, and the core has decoder and encoder too.
        let rate = format.frameRate.isZero ? 30 : format.frameRate.value
        let area = 1e9 / rate / 3 / max(try nanosecondsPerPixel(), 1)
        let aspect = Double(long) / Double(max(min(format.width, format.height), 1))
        let side = multiple(Int(min((area * aspect).squareRoot(), Double(mostSide))))
        return SearchSizes(
            yunet: min(max(side, leastLiveSide), max(long, leastLiveSide)), tracking: leastLiveSide, format)
    }

    /// A search on a small picture too: means of many samples show faces that noise hides in the fine one.
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

    /// What searching takes of each frame, for the plan: measured, 100 ns for a pixel by YuNet and 270 by a cascade.
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
