// SPDX-License-Identifier: Apache-2.0

/// A medium of a stream. Its number is that of its track in URLs.
enum Medium: Int, Sendable, CaseIterable {
    case pictures = 0
    case sound = 1

    /// Stored, so that iterating over it allocates nothing.
    static let allCases: [Medium] = [.pictures, .sound]

    var other: Medium { self == .pictures ? .sound : .pictures }
}

/// A value for each medium.
struct PerMedium<Value> {
    var pictures: Value
    var sound: Value

    init(pictures: Value, sound: Value) {
        self.pictures = pictures
        self.sound = sound
    }

    init(_ value: Value) { self.init(pictures: value, sound: value) }

    subscript(medium: Medium) -> Value {
        get { medium == .pictures ? pictures : sound }
        set { if medium == .pictures { pictures = newValue } else { sound = newValue } }
    }

    func map<Result>(_ body: (Value) throws -> Result) rethrows -> PerMedium<Result> {
        PerMedium<Result>(pictures: try body(pictures), sound: try body(sound))
    }
}

extension PerMedium: Sendable where Value: Sendable {}
extension PerMedium: Equatable where Value: Equatable {}
