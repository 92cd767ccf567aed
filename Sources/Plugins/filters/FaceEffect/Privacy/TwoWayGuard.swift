// SPDX-License-Identifier: Apache-2.0

/// Decides for each frame what has to be covered, also by what the frames after it have shown.
///
/// A face that is found late is covered in the frames before, and one that is missed between two findings is
/// covered there too. A cut ends both.
///
/// It takes the decisions of ``PrivacyGuard`` and only adds to them. Like it, it is a value without threads, pixels
/// or a clock of its own. Frames go in at ``add(_:carry:)``; each comes out, as a ``Plan``, once ``capacity``
/// frames have followed it. It allocates nothing after its start, except for moments.
struct TwoWayGuard {
    /// Why a face is covered in a frame.
    enum How: Int, CaseIterable {
        /// The frame's own search saw it.
        case found
        /// Earlier and later searches saw it.
        case bridged
        /// A later search saw it for the first time.
        case before
        /// An earlier search saw it, and no later one has.
        case held

        var name: StaticString {
            switch self {
            case .found: "found"
            case .bridged: "bridged"
            case .before: "before"
            case .held: "held"
            }
        }
    }

    struct Cover: Equatable {
        var serial: Int
        var how: How
        /// Without margin.
        var box: FaceRect
        /// The confidence of this frame's detection, or else of the nearest one that is known.
        var confidence: Double
    }

    /// What a person should look at.
    struct Moment: Equatable {
        enum Kind: Int, CaseIterable {
            /// A face is covered from the next frame on, before it was found. It may have been there even earlier.
            case beginsLate
            /// No search saw the face for a long time, and later ones did.
            case bridgedLong
            /// The search that saw it was not sure.
            case unsure
            /// The face was no longer found, away from the picture's edge, and its cover ends.
            case lost
            /// The whole frame is covered.
            case whole
        }
        var kind: Kind
        var serial: Int
        var box: FaceRect
        /// How much the moment is worth a look, compared with others of its kind.
        var weight: Double
    }

    /// A face of the frame that is added.
    struct Face {
        var known: PrivacyGuard.Face
        var confidence: Double
    }

    /// What is known of a frame that is added.
    struct Frame {
        var time: Int64
        var mode: PrivacyGuard.Mode
        var isCut: Bool
    }

    /// One frame, and what is to be covered in it.
    struct Plan {
        fileprivate(set) var number = 0
        fileprivate(set) var time: Int64 = 0
        fileprivate(set) var mode = PrivacyGuard.Mode.starting
        /// What it was when the frame came.
        fileprivate(set) var firstMode = PrivacyGuard.Mode.starting
        fileprivate(set) var isCut = false
        fileprivate(set) var covers: [Cover] = []
        fileprivate(set) var moments: [Moment] = []
        /// Whether something was to be covered by what was known when the frame came.
        fileprivate(set) var wasCovered = false
        /// What the search was too unsure of to begin a face with.
        fileprivate var weak: [FaceRect] = []
    }

    /// How a face is followed back from where it was first found.
    private enum Walk {
        /// It goes on, as far as the frames are there and the face has been seen often enough.
        case open
        /// It led to a cut, to the picture's edge or to where the face was known.
        case explained
        /// The face was lost on the way, or no frame is left.
        case ended
    }

    /// A face that was found in one of the frames that are kept.
    private struct Known {
        var serial: Int
        var foundIn: Int
        var box: FaceRect
        var confidence: Double
        var findings = 1
        var walk = Walk.open
        /// The frame that the way back has reached.
        var walkedTo: Int
        var walkedBox: FaceRect
        /// Since when its points were not found on the way back, nanoseconds.
        var blindSince: Int64?
        /// Time of the first finding, or of the first after a gap that is longer than what is kept; nanoseconds.
        var begunAt: Int64
        var isCovered = true
        var hasToldUnsure = false
    }

    private static let mostFaces = 2 * FaceTracks.mostTracks
    /// The most covers of a frame.
    static let mostCovers = PrivacyGuard.mostRegions
    /// Only bounds the memory: each kind for each face, and one for the frame.
    private static let mostMoments = 4 * mostFaces + 1
    /// A face that was found fewer than `surely` times may not be a face: it is carried back by no more than this,
    /// nanoseconds. Any other is carried back as far as the frames go.
    private static let firstReach: Int64 = 170_000_000
    private static let surely = 3
    /// A gap between two findings that a person should look at, nanoseconds.
    static let longGap: Int64 = 500_000_000
    /// The least share of a face that must lie in the picture.
    private static let leastVisible = 0.3

    /// How many frames are looked ahead.
    let capacity: Int
    /// For how long before its first finding a face stays covered where flow loses it, nanoseconds.
    private let holdTime: Int64
    /// Below this a finding is unsure.
    private let sure: Double
    private let width: Double
    private let height: Double
    /// Each at its number modulo their count.
    private var plans: [Plan]
    private var next = 0
    private var oldest = 0
    private var faces: [Known] = []

    /// How many covers there were, by reason, in the frames that went out.
    private(set) var coverCounts = [Int](repeating: 0, count: How.allCases.count)

    /// - Parameters:
    ///   - capacity: Frames that are looked ahead, at least 1.
    ///   - holdTime: As ``PrivacyGuard`` has it, nanoseconds.
    ///   - width, height: Of the stored picture.
    init(capacity: Int, holdTime: Int64, sure: Double, width: Int, height: Int) {
        self.capacity = capacity
        self.holdTime = holdTime
        self.sure = sure
        self.width = Double(width)
        self.height = Double(height)
        plans = [Plan](repeating: Plan(), count: capacity + 1)
        for index in plans.indices {
            plans[index].covers.reserveCapacity(Self.mostCovers)
            plans[index].weak.reserveCapacity(OpenCV.mostFindings)
        }
        faces.reserveCapacity(Self.mostFaces)
    }

    /// How many frames are kept.
    var count: Int { next - oldest }
    /// The number of the oldest frame that is kept, counted from 0.
    var oldestNumber: Int { oldest }

    /// Adds the next frame. There must be room: call ``takeOldest()`` first where ``count`` is above ``capacity``.
    ///
    /// - Parameters:
    ///   - known: The faces in it.
    ///   - regions: What ``PrivacyGuard`` covers, with the face that each belongs to.
    ///   - weak: What its search was unsure of.
    ///   - carry: Where a box of frame `from` lies in frame `to`, a neighbour; nil where its points are not found.
    ///     Both frames are kept.
    mutating func add(
        _ frame: Frame, _ known: some Sequence<Face>, regions: some Sequence<(FaceRect, Int)>, weak: [FaceRect],
        carry: (_ box: FaceRect, _ from: Int, _ to: Int) -> FaceRect?
    ) {
        precondition(count <= capacity, "a frame was added without room")
        let number = next
        next += 1
        let place = number % plans.count
        plans[place].number = number
        plans[place].time = frame.time
        (plans[place].mode, plans[place].firstMode) = (frame.mode, frame.mode)
        plans[place].isCut = frame.isCut
        plans[place].covers.removeAll(keepingCapacity: true)
        plans[place].moments.removeAll()
        plans[place].weak.removeAll(keepingCapacity: true)
        plans[place].weak.append(contentsOf: weak)
        if frame.isCut { faces.removeAll(keepingCapacity: true) }
        for (box, serial) in regions {
            let confidence = faces.first { $0.serial == serial }?.confidence ?? 0
            cover(Cover(serial: serial, how: .held, box: box, confidence: confidence), in: number)
        }
        plans[place].wasCovered = !plans[place].covers.isEmpty
        for face in known where face.known.isSeen {
            find(face, in: number, carry)
        }
        for index in faces.indices where faces[index].walk == .open {
            var face = faces[index]
            walkBack(&face, carry)
            faces[index] = face
        }
        tellLost(number)
        if frame.mode.coversAll, number == oldest || !plan(number - 1).mode.coversAll {
            tell(.whole, 0, FaceRect(x: 0, y: 0, width: width, height: height), weight: 0, in: number)
        }
    }

    /// Takes the oldest frame; nil when none is kept.
    mutating func takeOldest() -> Plan? {
        guard count > 0 else { return nil }
        let plan = plan(oldest)
        oldest += 1
        return plan
    }

    /// Counts the covers of a frame that went out.
    mutating func count(_ plan: Plan) {
        if !plan.mode.coversAll { for cover in plan.covers { coverCounts[cover.how.rawValue] += 1 } }
    }

    private func plan(_ number: Int) -> Plan { plans[number % plans.count] }

    // MARK: Findings

    private mutating func find(
        _ face: Face, in number: Int, _ carry: (FaceRect, Int, Int) -> FaceRect?
    ) {
        let (serial, box) = (face.known.serial, face.known.box)
        cover(Cover(serial: serial, how: .found, box: box, confidence: face.confidence), in: number)
        let isUnsure = face.confidence < sure
        if let index = faces.firstIndex(where: { $0.serial == serial }) {
            let last = faces[index].foundIn
            if last < number - 1 {
                if last >= oldest {
                    bridge(faces[index], to: face, in: number, carry)
                } else {
                    // Too long ago to be bridged: as if it were found for the first time.
                    faces[index].walk = .open
                    (faces[index].walkedTo, faces[index].walkedBox) = (number, box)
                    faces[index].blindSince = nil
                    faces[index].begunAt = plan(number).time
                }
            }
            faces[index].foundIn = number
            faces[index].box = box
            faces[index].confidence = face.confidence
            faces[index].findings += 1
            if isUnsure, !faces[index].hasToldUnsure {
                faces[index].hasToldUnsure = true
                tell(.unsure, serial, box, weight: 1 - face.confidence, in: number)
            }
        } else if faces.count < Self.mostFaces {
            faces.append(
                Known(
                    serial: serial, foundIn: number, box: box, confidence: face.confidence, walkedTo: number,
                    walkedBox: box, begunAt: plan(number).time, hasToldUnsure: isUnsure))
            if isUnsure { tell(.unsure, serial, box, weight: 1 - face.confidence, in: number) }
        } else {
            // It cannot be followed back.
            coverAll(from: oldest, to: number)
        }
    }

    /// Covers frames completely, back to the last cut.
    private mutating func coverAll(from first: Int, to last: Int) {
        for number in stride(from: last, through: first, by: -1) {
            let place = number % plans.count
            if !plans[place].mode.coversAll { plans[place].mode = .crowded }
            if plans[place].isCut { return }
        }
    }

    /// Covers a face between two findings: on the straight line between them, and where flow leads back.
    private mutating func bridge(
        _ known: Known, to face: Face, in number: Int, _ carry: (FaceRect, Int, Int) -> FaceRect?
    ) {
        let first = known.foundIn
        let steps = Double(number - first)
        let confidence = min(known.confidence, face.confidence)
        var carried: FaceRect? = face.known.box
        for between in stride(from: number - 1, to: first, by: -1) {
            let share = Double(between - first) / steps
            let straight = known.box.approaching(face.known.box, place: share, size: share)
            cover(Cover(serial: known.serial, how: .bridged, box: straight, confidence: confidence), in: between)
            carried = carried.flatMap { carry($0, between + 1, between) }
            if let carried {
                cover(Cover(serial: known.serial, how: .bridged, box: carried, confidence: confidence), in: between)
            }
        }
        guard plan(number).time - plan(first).time >= Self.longGap else { return }
        let middle = (first + number) / 2
        tell(
            .bridgedLong, known.serial, known.box.approaching(face.known.box, place: 0.5, size: 0.5), weight: steps,
            in: middle)
    }

    /// Follows a face back from where it was first found, as far as is known by now.
    private mutating func walkBack(_ face: inout Known, _ carry: (FaceRect, Int, Int) -> FaceRect?) {
        while face.walk == .open {
            let from = face.walkedTo
            if from >= oldest, plan(from).isCut || from == 0 {
                face.walk = .explained
                break
            }
            let isSure = face.findings >= Self.surely
            guard from > oldest else {
                // Any other face stays open: it is noted once it has been found often enough.
                if isSure { face.walk = .ended }
                break
            }
            if !isSure, face.begunAt - plan(from - 1).time > Self.firstReach { return }
            step(&face, from, from - 1, carry)
        }
        guard face.walk == .ended else { return }
        let last = max(face.walkedTo - 1, oldest)
        tell(.beginsLate, face.serial, face.walkedBox, weight: face.walkedBox.size, in: last)
    }

    private mutating func step(
        _ face: inout Known, _ from: Int, _ to: Int, _ carry: (FaceRect, Int, Int) -> FaceRect?
    ) {
        var box = face.walkedBox
        let time = plan(to).time
        if let carried = carry(box, from, to) {
            box = carried
            face.blindSince = nil
        } else {
            let since = face.blindSince ?? plan(from).time
            face.blindSince = since
            // Its region grows like that of a held face.
            box = box.grown(0.01)
            if since - time > holdTime { face.walk = face.findings >= Self.surely ? .ended : .explained }
        }
        var (most, best) = (0.0, box)
        for weak in plans[to % plans.count].weak where likeness(weak, box) > most {
            (most, best) = (likeness(weak, box), weak)
        }
        if most > 0 {
            box = box.approaching(best, place: 0.7, size: 0.5)
            face.blindSince = nil
            face.walk = .open
        }
        guard face.walk == .open else { return }
        let visible = box.clipped(width: width, height: height)?.area ?? 0
        if visible < Self.leastVisible * box.area || !box.area.isFinite {
            face.walk = .explained
            return
        }
        // The same face may have another number there, as when it jumped.
        let isKnown = plan(to).covers.contains {
            $0.how == .found && $0.serial != face.serial
                && ($0.box.overlap(box) > 0.3 || $0.box.containment(box) > 0.75)
        }
        if isKnown {
            face.walk = .explained
            return
        }
        face.walkedTo = to
        face.walkedBox = box
        cover(Cover(serial: face.serial, how: .before, box: box, confidence: face.confidence), in: to)
    }

    /// The overlap where it is enough for one face, else 0.
    private func likeness(_ weak: FaceRect, _ box: FaceRect) -> Double {
        let overlap = weak.overlap(box)
        return overlap >= 0.25 ? overlap : 0
    }

    // MARK: Covers

    /// Adds to what is covered in a frame. Boxes of one face that overlap become one.
    private mutating func cover(_ cover: Cover, in number: Int) {
        let place = number % plans.count
        if cover.how == .bridged || cover.how == .before {
            // It was not lost after all.
            plans[place].moments.removeAll { $0.kind == .lost && $0.box.containment(cover.box) > 0.25 }
        }
        var joined = cover
        if let index = plans[place].covers.firstIndex(where: {
            $0.serial == cover.serial && $0.box.containment(cover.box) > 0.5
        }) {
            let other = plans[place].covers[index]
            joined.box = other.box.reaching(cover.box, share: 0)
            if other.how.rawValue < cover.how.rawValue {
                (joined.how, joined.confidence) = (other.how, other.confidence)
            }
            plans[place].covers[index] = joined
        } else if plans[place].covers.count < Self.mostCovers {
            plans[place].covers.append(joined)
        } else {
            // No room: it is better to cover too much than to leave a face out.
            let last = plans[place].covers.count - 1
            plans[place].covers[last].box = plans[place].covers[last].box.reaching(cover.box, share: 0)
        }
    }

    // MARK: Moments

    private mutating func tell(
        _ kind: Moment.Kind, _ serial: Int, _ box: FaceRect, weight: Double, in number: Int
    ) {
        let place = number % plans.count
        guard plans[place].moments.count < Self.mostMoments else { return }
        plans[place].moments.append(Moment(kind: kind, serial: serial, box: box, weight: weight))
    }

    /// Notes faces whose cover ends with this frame, and forgets those that are no longer kept.
    private mutating func tellLost(_ number: Int) {
        let now = plan(number)
        for index in faces.indices {
            let face = faces[index]
            let isCovered = now.covers.contains { $0.serial == face.serial }
            defer { faces[index].isCovered = isCovered }
            guard face.isCovered, !isCovered, !now.mode.coversAll else { continue }
            let isAtEdge =
                face.box.x < face.box.width * 0.3 || face.box.y < face.box.height * 0.3
                || face.box.right > width - face.box.width * 0.3 || face.box.bottom > height - face.box.height * 0.3
            let isOther = now.covers.contains { $0.box.containment(face.box) > 0.5 }
            // What was found only once or twice may not have been a face.
            if !isAtEdge, !isOther, face.findings >= Self.surely {
                tell(.lost, face.serial, face.box, weight: face.box.size, in: number)
            }
        }
        let kept = oldest
        faces.removeAll { !$0.isCovered && $0.foundIn < kept }
    }
}
