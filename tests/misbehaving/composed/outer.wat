;; Gives the policy, which the build puts in the place of the empty component, a function that takes another 15 MiB and so many
;; elements of a table.
(component
  (component $policy)
  (component $taker
    (core module $module
      (memory 0)
      (table $own 0 funcref)
      (func (export "take") (param i32)
        (if (i32.eq (memory.grow (i32.const 240)) (i32.const -1)) (then unreachable))
        (if (i32.eq (table.grow $own (ref.null func) (local.get 0)) (i32.const -1)) (then unreachable))))
    (core instance $instance (instantiate $module))
    (func (export "take") (param "elements" u32) (canon lift (core func $instance "take"))))
  (instance $taken (instantiate $taker))
  (instance $judging (instantiate $policy (with "take" (func $taken "take"))))
  (export "headcount:policy/policy@0.1.0" (instance $judging "headcount:policy/policy@0.1.0")))
