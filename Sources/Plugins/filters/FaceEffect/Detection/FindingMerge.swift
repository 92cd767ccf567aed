// SPDX-License-Identifier: Apache-2.0

/// Joins what several searches of one picture found, so that a further search never uncovers what another one alone would
/// cover.
///
/// A pure value over a list with a bound. What counts is what each finding can do by itself: begin a face, keep a known
/// one, or only guide one that is carried back.
struct FindingMerge {
    /// The confidence from which a finding begins a face.
    let begins: Double
    /// The confidence from which it keeps a known one.
    let keeps: Double
    /// The least common share of two boxes that are one face, and that of the smaller box within the larger.
    private static let sameFace = 0.3
    private static let partOfFace = 0.75

    /// Adds a finding of a finer search to the first `count` entries of `list`.
    ///
    /// Two that overlap become one with the confidence of the surer. Its box holds both where each is sure enough to keep a
    /// face, and is that of the surer otherwise. A box within a larger one is a part of that face only where the larger
    /// one begins a face.
    ///
    /// - Parameter coarser: How many entries are of coarser searches: those of one search are different faces.
    /// - Returns: False where it belongs into the list and there is no room.
    func add(
        _ face: Detection, to list: UnsafeMutableBufferPointer<Detection>, count: inout Int, coarser: Int
    ) -> Bool {
        var joined = false
        for index in 0..<min(coarser, count) where isSame(list[index], face) {
            let other = list[index]
            let (surer, lesser) = other.confidence >= face.confidence ? (other, face) : (face, other)
            list[index] = Detection(
                box: lesser.confidence >= keeps ? surer.box.union(lesser.box) : surer.box,
                confidence: surer.confidence, landmarks: surer.landmarks)
            // It may lie between two: each of them then holds it.
            joined = true
        }
        if joined { return true }
        guard count < list.count else { return false }
        list[count] = face
        count += 1
        return true
    }

    private func isSame(_ other: Detection, _ face: Detection) -> Bool {
        if other.box.overlap(face.box) > Self.sameFace { return true }
        guard other.box.containment(face.box) > Self.partOfFace else { return false }
        let larger = other.box.area >= face.box.area ? other : face
        return larger.confidence >= begins
    }
}
