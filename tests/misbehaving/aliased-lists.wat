;; Every agent has one and the same list of 10 000 checks.
(func (export "headcount:policy/policy@0.1.0#judge") (param i32) (result i32)
  (local $agent i32)
  (local $end i32)
  (drop (call $verdict (local.get 0)))
  (local.set $agent (i32.load (i32.const 1032)))
  (local.set $end (i32.add (local.get $agent) (i32.mul (i32.load (i32.const 1036)) (i32.const 48))))
  (loop $again
    ;; agent.checks
    (i32.store offset=40 (local.get $agent) (i32.const 0x100000))
    (i32.store offset=44 (local.get $agent) (i32.const 10000))
    (local.set $agent (i32.add (local.get $agent) (i32.const 48)))
    (br_if $again (i32.lt_u (local.get $agent) (local.get $end))))
  (i32.const 1024))
