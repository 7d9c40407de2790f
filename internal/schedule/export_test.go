package schedule

import "time"

// SetZone gives t a zone that has no name.
func (t *Timetable) SetZone(zone *time.Location) { t.zone = zone }
