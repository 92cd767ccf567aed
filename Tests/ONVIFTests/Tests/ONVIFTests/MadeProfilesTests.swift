// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ONVIF

@Suite struct MadeProfilesTests {
    /// Whatever clients do, the profiles that were used last are there, and no more than eight.
    @Test(arguments: 0..<50) func theOneUsedLongestAgoGoes(round: Int) throws {
        var made = MadeProfiles()
        /// The tokens that must be there, the one used last at the end.
        var expected: [String] = []
        for number in 0..<200 {
            let known = expected.randomElement()
            switch Int.random(in: 0..<5) {
            case 0, 1:
                let token = try made.make(name: "p", token: Bool.random() ? "own \(number)" : nil).token
                expected = (expected + [token]).suffix(MadeProfiles.most)
            case 2:
                if let known {
                    made.use(known)
                    expected = expected.filter { $0 != known } + [known]
                }
                made.use("unknown")
            case 3:
                guard let known, Int.random(in: 0..<4) == 0 else { continue }
                try made.delete(known)
                expected.removeAll { $0 == known }
            default:
                // Refused: nothing goes for it.
                guard let known else { continue }
                #expect(throws: SOAPFault.self) { try made.make(name: "p", token: known) }
                #expect(throws: SOAPFault.self) { try made.make(name: "", token: nil) }
            }
            #expect(Set(made.profiles.map(\.token)) == Set(expected))
            #expect(made.profiles.count == expected.count && expected.count <= MadeProfiles.most)
        }
    }
}
