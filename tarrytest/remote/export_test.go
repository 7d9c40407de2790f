package remote

// Faults is the number of requests that a fault is still to meet.
func (s *Server) Faults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}
