// SPDX-License-Identifier: Apache-2.0

/// Names of ALSA's devices by the card's id in place of its number, which changes when it is plugged in again. Pure.
enum StableName {
    /// `hw:CARD=Webcam,DEV=0` for `hw:1,0`; other names as they are.
    ///
    /// - Parameter id: The card's id by its number (`/proc/asound/cardN/id`); nil where there is none.
    static func of(_ name: String, id: (Int) -> String?) -> String {
        let parts = name.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, parts[0] == "hw" || parts[0] == "plughw" else { return name }
        let numbers = parts[1].split(separator: ",", omittingEmptySubsequences: false)
        guard (1...3).contains(numbers.count), numbers.allSatisfy({ Int($0) != nil }), let id = id(Int(numbers[0])!)
        else { return name }
        let keys = ["CARD=\(id)"] + zip(["DEV", "SUBDEV"], numbers.dropFirst()).map { "\($0)=\($1)" }
        return "\(parts[0]):\(keys.joined(separator: ","))"
    }
}
